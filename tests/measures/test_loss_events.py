"""Loss events on made curves: each once, of the right kind, whatever scale, offset, order or rounding the log has."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from gdiag.analyzers import loss_spike
from gdiag.measures.curves import Path
from gdiag.measures.loss_events import LossEvent, LossView, beyond_skew, loss_view
from gdiag.measures.trajectory import trajectory
from gdiag.schema import TABLES
from tests.analyzers.made_layers import layered
from tests.benchmarks.losses import KINDS, WANTED, case, verdict
from tests.measures.made import NOISES, Floats, Noise, climb, healthy, spike


def seen(loss: Floats, step: np.ndarray[tuple[int], np.dtype[np.int64]] | None = None) -> LossView:
    steps = np.arange(len(loss)) if step is None else step
    frame = pl.DataFrame({"step": steps, "loss": loss}).with_columns(
        source=pl.lit(0), line=pl.int_range(1, len(loss) + 1)
    )
    return loss_view(Path("trajectory", frame, int(steps[0])))


def kinds(view: LossView) -> list[str]:
    return [event.kind for event in view.events]


@pytest.mark.parametrize("noise", ["gauss", "sft", "heavy"])
def test_thirty_healthy_curves_of_three_noise_families(noise: Noise) -> None:
    assert [seed for seed in range(3000, 3010) if seen(healthy(2000, noise, seed)).events] == []


@pytest.mark.parametrize("second", [14.0, 40.0, 200.0])
def test_spikes_over_in_two_rows_are_told_from_hard_batches_that_come_alone(second: float) -> None:
    curve, at = healthy(600, "gauss", 5), [210, 330, 480]
    noise = float(np.std(np.diff(curve[100:])) / np.sqrt(2))
    short, alone = curve.copy(), curve.copy()
    for row in at:
        short[row : row + 2] += np.array([40.0, second]) * noise
    for row in range(150, 590, 40):
        alone[row] += 14.0 * noise
    found = [(event.onset, event.last) for event in seen(short).events]
    assert found == [(row, row + 1) for row in at]
    assert seen(alone).events == ()


@pytest.mark.parametrize("height", [15.0, 30.0, 60.0, 200.0])
def test_one_spike_of_two_rows_is_one_at_any_height(height: float) -> None:
    curve = healthy(2000, "gauss", 7)
    curve[1500:1502] += height * float(np.std(np.diff(curve[200:])) / np.sqrt(2))
    assert [(event.onset, event.last) for event in seen(curve).events] == [(1500, 1501)]


def test_two_hard_batches_in_a_row_prove_nothing_where_hard_batches_are_frequent() -> None:
    curve = healthy(2000, "gauss", 6)
    noise = float(np.std(np.diff(curve[200:])) / np.sqrt(2))
    rng = np.random.default_rng(1)
    curve[rng.choice(np.arange(300, 1900), 60, replace=False)] += (8.0 + rng.exponential(5.0, 60)) * noise
    plain = curve.copy()
    for height in (12.0, 24.0):  # the farthest two of many are as likely to meet
        curve[1000:1002] = plain[1000:1002] + height * noise
        assert [event.onset for event in seen(curve).events] == []


def test_a_loss_about_zero_has_no_level_to_keep() -> None:
    """The surrogate of a policy gradient begins at zero and follows a moving reference; a likelihood below zero does not."""
    rows, noise = np.arange(2000), 0.03 * np.random.default_rng(0).standard_normal(2000)
    curve = -0.5 * (1 - np.exp(-rows / 150)) + 0.4 * np.clip((rows - 600) / 800, 0, 1) + noise
    assert kinds(seen(curve)) == []
    assert kinds(seen(curve - 5.0)) == ["divergence"]


@pytest.mark.parametrize(
    ("height", "norm", "tied", "found"),
    [(16.0, 12.0, 0, ["spike"]), (9.0, 12.0, 0, ["spike"]), (8.0, 1.2, 0, []), (4.0, 12.0, 0, []), (9.0, 12.0, 12, [])],
)  # fmt: skip
def test_a_row_far_out_in_loss_and_gradient_is_a_batch(
    height: float, norm: float, tied: int, found: list[str]
) -> None:  # fmt: skip
    """Unless hard batches raise both columns in other rows of the run as well."""
    rng = np.random.default_rng(3)
    loss, grad = healthy(900, "gauss", 3000), np.exp(rng.normal(0, 0.1, 900))
    noise = float(np.std(np.diff(loss[300:])) / np.sqrt(2))
    hard = np.arange(300, 300 + 20 * tied, 20)
    loss[hard] += 7 * noise
    grad[hard] *= 3
    loss[600 + 7] += height * noise
    grad[600 + 7] *= norm
    frame = pl.DataFrame({"step": np.arange(900), "loss": loss, "grad_norm": grad}).with_columns(
        source=pl.lit(0), line=pl.int_range(1, 901)
    )
    assert kinds(loss_view(Path("trajectory", frame, 0))) == found


INPUTS: dict[str, tuple[Floats, list[str]]] = {
    "2.7x, 25 rows": (spike(2000, 1200, 1.7 * 4.5, 8), ["spike"]),
    "1.35x, 30 rows": (spike(2000, 1200, 0.35 * 4.5, 10), ["spike"]),
    "six of them": (sum((spike(2000, at, 6.0, 8) for at in range(500, 2000, 250)), np.zeros(2000)), ["spike"] * 6),
    "divergence": (climb(2000, 1300, 6.0, 300), ["divergence"]),
    "slow divergence": (climb(2000, 1000, 1.5, 1000), ["divergence"]),
}


@pytest.mark.parametrize("name", INPUTS)
def test_the_inputs_that_others_were_tried_on(name: str) -> None:
    added, wanted = INPUTS[name]
    assert kinds(seen(healthy(2000, "gauss", 3) + added)) == wanted


@pytest.mark.parametrize("factor", [4.0, 15.0])
def test_a_single_row_many_times_the_level(factor: float) -> None:
    loss = healthy(2000, "gauss", 3)
    loss[1200] *= factor
    (event,) = seen(loss).events
    assert (event.kind, event.lone, event.onset_step) == ("spike", True, 1200)


def test_three_single_rows_no_worse_than_the_start_are_hard_batches() -> None:
    loss = healthy(2000, "gauss", 3)
    loss[[700, 1100, 1500]] += 0.6 * (loss[0] - loss[700])
    found = seen(loss)
    assert found.events == ()
    assert found.hard_rows.tolist() == [700, 1100, 1500]


def test_a_raised_row_of_odd_tokens_is_an_event() -> None:
    rng = np.random.default_rng(2)
    loss, entropy = healthy(2000, "gauss", 3), 4.2 + rng.normal(0, 0.05, 2000)
    loss[900] += 7 * 1.4826 * float(np.median(np.abs(np.diff(loss[850:950]))))
    frame = pl.DataFrame({"step": np.arange(2000), "loss": loss, "token_entropy": entropy})
    frame = frame.with_columns(source=pl.lit(0), line=pl.int_range(1, 2001))
    assert loss_view(Path("trajectory", frame, 0)).events == ()
    odd = frame.with_columns(token_entropy=pl.when(pl.col("step") == 900).then(1.0).otherwise("token_entropy"))
    (event,) = loss_view(Path("trajectory", odd, 0)).events
    assert (event.kind, event.onset_step, event.lone) == ("spike", 900, True)
    often = pl.when(pl.col("step") % 150 == 0).then(1.0).otherwise("token_entropy")  # batches of few samples
    assert loss_view(Path("trajectory", frame.with_columns(token_entropy=often), 0)).events == ()


def test_most_made_events_get_their_name() -> None:
    wrong = {
        kind: sum(verdict(case(kind, seed))[0] != WANTED.get(kind, kind) for seed in range(500, 510)) for kind in KINDS
    }
    assert wrong["none"] == wrong["lr_steps"] == 0
    assert sum(wrong[kind] for kind in ("single", "lone", "repeated", "divergence", "slow")) <= 8


def test_what_follows_a_divergence_is_no_event_of_its_own() -> None:
    loss = healthy(3000, "gauss", 5) + climb(3000, 1500, 6.0, 200) + spike(3000, 2400, 4.0, 10)
    assert kinds(seen(loss)) == ["divergence"]


def test_a_slow_rise_before_a_divergence_gives_the_onset() -> None:
    loss = healthy(3000, "gauss", 5) + climb(3000, 1000, 2.0, 1500) + climb(3000, 2700, 6.0, 50)
    (event,) = seen(loss).events
    assert event.kind == "divergence"
    assert event.onset_step == pytest.approx(1000, abs=250)


CHANGES = ("offset", "factor", "constant", "doubled", "shuffled", "dropped", "rounded")


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("noise", NOISES)
def test_the_events_do_not_depend_on_how_it_is_logged(change: str, noise: Noise) -> None:
    added = spike(1500, 1000, 4.0, 15)
    loss = healthy(1500, noise, 11) + added
    plain = [(event.kind, event.onset_step) for event in seen(loss).events]
    step, rng = np.arange(1500), np.random.default_rng(1)
    if change == "offset":
        step = step + 250_000
    elif change == "factor":
        loss = loss * 0.01
    elif change == "constant":
        loss = loss - 30
    elif change == "rounded":
        loss = np.array([float(f"{value:.4g}") for value in loss])
    keep = np.sort(rng.choice(1500, 1350, replace=False)) if change == "dropped" else np.arange(1500)
    rows = {"doubled": np.repeat(keep, 2), "shuffled": rng.permutation(keep)}.get(change, keep)
    frame = pl.DataFrame(
        {"run": ["r"] * len(rows), "rank": [None] * len(rows), "step": step[rows], "source": 0, "line": 1 + np.arange(len(rows)),
         "loss": loss[rows]}, schema_overrides=TABLES["steps"],
    )  # fmt: skip
    found = [(event.kind, event.onset_step - int(step[0])) for event in loss_view(trajectory(frame).paths[0]).events]
    assert [kind for kind, _ in found] == [kind for kind, _ in plain]
    assert [onset for _, onset in found] == [pytest.approx(onset, abs=4) for _, onset in plain]


def test_a_modest_spike_that_the_logarithm_does_not_show_is_skew() -> None:
    rng = np.random.default_rng(3)
    value = np.asarray(0.6 * np.exp(0.6 * rng.standard_normal(2000)), dtype=np.float64)
    value[400:412] *= 12.0  # far out in the logarithm as well
    value[1200:1206] *= 2.0  # one and a half standard deviations there
    frame = pl.DataFrame({"step": np.arange(2000), "loss": value}).with_columns(source=pl.lit(0), line=pl.lit(1))
    path = Path("trajectory", frame, 0)

    def event(onset: int, last: int, z: float) -> LossEvent:
        return LossEvent("spike", path, onset, onset + 1, last, 1.0, z, 0.6, 0.6, 0.1, last + 1, (1.0, 2.0), 0.0, 1.0)

    clear, skewed, huge = event(400, 411, 9.0), event(1200, 1205, 9.0), event(1200, 1205, 20.0)
    assert beyond_skew(value, [clear, skewed, huge]) == [clear, huge]
    assert beyond_skew(value - 1.0, [skewed]) == [skewed]  # no logarithm below zero


def test_a_short_extract_keeps_its_spike() -> None:
    loss = np.array([2.5, 2.2, 2.45, 2.1, 2.42, 2.15, 2.33, 4.4, 4.2, 2.37, 2.36, 2.35])
    assert kinds(seen(loss)) == ["spike"]


def test_too_few_rows_have_no_events() -> None:
    for rows in range(12):
        assert seen(np.linspace(5, 4, rows)).events == () if rows else True


def test_a_sparse_log_needs_the_gradient_for_a_short_spike() -> None:
    rng = np.random.default_rng(8)
    added = spike(6000, 4001, 1.2, 9, rise=1)
    loss, norm = healthy(6000, "skew", 3) + added, np.exp(rng.normal(0, 0.15, 6000) + 2 * added)
    frame = pl.DataFrame({"step": np.arange(6000), "loss": loss, "grad_norm": norm})
    frame = frame.with_columns(source=pl.lit(0), line=pl.int_range(1, 6001)).gather_every(10)
    (event,) = loss_view(Path("trajectory", frame, 0)).events
    assert (event.kind, event.onset_step) == ("spike", 4010)
    alone = frame.with_columns(grad_norm=pl.lit(1.0) + 0.1 * pl.Series(rng.random(600)))
    assert loss_view(Path("trajectory", alone, 0)).events == ()


def test_the_norms_of_layers_stand_in_for_the_total() -> None:
    rng = np.random.default_rng(5)
    loss, layers = healthy(900, "gauss", 3000), np.exp(rng.normal(0, 0.1, (900, 4)))
    noise = float(np.std(np.diff(loss[300:])) / np.sqrt(2))
    loss[607] += 6 * noise
    layers[607] *= 5
    named = {f"blocks.{k}.fc": layers[:, k] for k in range(4)}
    (finding,) = loss_spike.analyze(layered(named, steps={"loss": loss}))
    assert finding.where.step == 607
    assert finding.number("grad_ratio") == pytest.approx(5, rel=0.3)
    calm = {layer: np.where(norm > 3, 1.0, norm) for layer, norm in named.items()}
    assert (
        loss_spike.analyze(layered(calm, steps={"loss": loss})) == []
    )  # 6 times the noise in one row prove nothing alone


def test_a_loss_that_stands_at_twice_its_level_is_not_back() -> None:
    rng = np.random.default_rng(4)
    loss = np.concatenate([180 * np.exp(-np.arange(60) / 12) + 5, np.full(100, 5.0)])
    loss += rng.normal(0, 1.0, 160) * np.linspace(3, 1, 160)
    loss[100:118] += 1000 * np.exp(-np.abs(np.arange(18) - 14) / 2)
    loss[118:] = 14 + rng.normal(0, 3.0, 42)
    (event,) = [event for event in seen(np.abs(loss)).events if event.excess > 100]
    assert event.recovery is None
    loss[118:] = 5 + rng.normal(0, 1.0, 42)
    (event,) = [event for event in seen(np.abs(loss)).events if event.excess > 100]
    assert event.recovery is not None


def test_a_long_rise_of_a_skewed_loss_is_no_skew() -> None:
    rng = np.random.default_rng(7)
    loss = 0.22 * np.exp(0.8 * rng.standard_normal(650) - 0.3)
    loss[:60] += 1.6 * np.exp(-np.arange(60) / 15)
    loss[367:420] += 0.75 * np.exp(-np.arange(53) / 40)
    (event,) = seen(loss).events
    assert event.kind == "spike"
    assert event.onset == pytest.approx(367, abs=2)
