"""Noise of a larger batch, told from a slower machine, in every noise family."""

from __future__ import annotations

import numpy as np
import pytest

from gdiag.measures.batch_growth import Growth, growth
from tests.analyzers import made_runs
from tests.measures.made import NOISES, Floats, Noise, noise

ROWS, AT = 2400, 1200


def curves(kind: Noise, seed: int, batch: Floats) -> tuple[Floats, Floats]:
    """Loss and gradient norm whose noise falls with the root of the batch."""
    rng = np.random.default_rng([seed, NOISES.index(kind)])
    steps = np.arange(ROWS)
    loss = (2.7 + 8.1 * (1 + steps / 25) ** -0.45) * np.exp(noise(kind, ROWS, rng) / np.sqrt(batch))
    grad = 0.5 * (1 + steps / 100) ** -0.3 * np.exp(0.2 * rng.standard_normal(ROWS) / np.sqrt(batch))
    return loss, grad


def seen(kind: Noise, seed: int, times: float, ratio: float) -> Growth:
    loss, grad = curves(kind, seed, np.where(np.arange(ROWS) < AT, 1.0, times))
    run = made_runs.view({"loss": loss, "grad_norm": grad})
    return growth(run.series("loss"), run.series("grad_norm"), run.series("lr"), AT - 1, AT, ratio)


@pytest.mark.parametrize("kind", NOISES)
def test_a_batch_twice_as_large(kind: Noise) -> None:
    verdicts = [seen(kind, seed, 2.0, 1.95).verdict for seed in range(6)]
    assert verdicts.count("grown") >= 5
    assert "unchanged" not in verdicts


@pytest.mark.parametrize("kind", NOISES)
@pytest.mark.parametrize("ratio", [1.2, 2.0, 4.0])
def test_a_slower_machine_is_never_a_larger_batch(kind: Noise, ratio: float) -> None:
    verdicts = [seen(kind, seed, 1.0, ratio).verdict for seed in range(6)]
    assert "grown" not in verdicts
    if ratio == 4:
        assert verdicts.count("unchanged") >= 5


def test_a_small_growth_cannot_be_told() -> None:
    assert seen("gauss", 1, 1.1, 1.1).verdict == "open"


def test_figures() -> None:
    found = seen("gauss", 2, 4.0, 4.0)
    assert found.expected == 0.5
    assert found.loss == pytest.approx(0.5, abs=0.12)
    assert found.grad_norm == pytest.approx(0.5, abs=0.12)


def test_few_rows_rounded_losses_and_no_columns_say_nothing() -> None:
    nothing = made_runs.view({"step_time": np.ones(10)}).series("loss")
    assert growth(nothing, nothing, nothing, 5, 6, 2.0) == Growth(2**-0.5, None, None, 0.0)
    loss, _ = curves("gauss", 3, np.ones(ROWS))
    rounded = made_runs.view({"loss": np.round(loss, 1)}).series("loss")
    assert growth(rounded, nothing, nothing, AT - 1, AT, 2.0).loss is None
    short = made_runs.view({"loss": loss[:120]}).series("loss")
    assert growth(short, nothing, nothing, 59, 60, 2.0).loss is None


def fading(seed: int, at: float, power: float, times: float, *, logged: bool) -> Growth:
    """Noise that falls as `power` of a cosine's rate, and with a batch `times` as large from the share `at` of the run on."""
    rows = 6000
    t, k = np.arange(rows), int(at * rows)
    rng, rate = np.random.default_rng(seed), 0.3 + 0.35 * (1 + np.cos(np.pi * t / rows))
    spread = rate**power / np.sqrt(np.where(t < k, 1.0, times))
    loss = 3 + 2 * np.exp(-t / 300) + 0.1 * spread * rng.standard_normal(rows)
    columns = {"loss": loss, "grad_norm": np.exp(0.2 * spread * rng.standard_normal(rows))}
    run = made_runs.view(columns | ({"lr": 1e-3 * rate} if logged else {}))
    return growth(run.series("loss"), run.series("grad_norm"), run.series("lr"), k - 1, k, 2.0)


@pytest.mark.parametrize("at", [0.3, 0.5, 0.7])
def test_noise_that_falls_with_the_rate_is_seldom_a_larger_batch(at: float) -> None:
    verdicts = [fading(seed, at, 1.0, 1.0, logged=False).verdict for seed in range(10)]
    assert verdicts.count("grown") <= 2


@pytest.mark.parametrize("at", [0.3, 0.5, 0.7])
@pytest.mark.parametrize("power", [0.0, 0.5, 1.0])
def test_a_logged_rate_tells_both(at: float, power: float) -> None:
    alone = [fading(seed, at, power, 1.0, logged=True).verdict for seed in range(10)]
    larger = [fading(seed, at, power, 2.0, logged=True).verdict for seed in range(10)]
    assert "grown" not in alone
    assert larger.count("grown") >= 7


def test_a_rate_that_falls_where_the_batch_grows_leaves_it_open() -> None:
    loss, grad = curves("gauss", 1, np.where(np.arange(ROWS) < AT, 1.0, 2.0))
    run = made_runs.view({"loss": loss, "grad_norm": grad, "lr": np.where(np.arange(ROWS) < AT, 1e-3, 1e-4)})
    assert growth(run.series("loss"), run.series("grad_norm"), run.series("lr"), AT - 1, AT, 2.0).verdict == "open"


def test_a_rate_of_zero_says_nothing() -> None:
    loss, grad = curves("gauss", 2, np.where(np.arange(ROWS) < AT, 1.0, 4.0))
    without = made_runs.view({"loss": loss, "grad_norm": grad})
    zero = made_runs.view({"loss": loss, "grad_norm": grad, "lr": np.zeros(ROWS)})
    told = [growth(r.series("loss"), r.series("grad_norm"), r.series("lr"), AT - 1, AT, 4.0) for r in (without, zero)]
    assert told[0] == told[1]
