"""GD120: steps trained twice."""

from __future__ import annotations

import numpy as np
import pytest

from gdiag.analyzers.replayed_steps import analyze
from gdiag.measures.run import RunView
from gdiag.model import Severity
from tests.analyzers.made_runs import Floats, learning, view

FIRST, ROWS = 500, 40


def resumed(change: Floats, *, rate: float = 1.0, digits: int = 6) -> RunView:
    """A run that is taken back by 40 steps; the losses of the steps trained again differ by `change`."""
    loss = np.round(learning(1000), digits)
    again = np.round(loss[FIRST : FIRST + ROWS] + change, digits)
    lr = np.full(1000, 1e-3)
    return view({
        "step": np.concatenate((np.arange(FIRST + ROWS), np.arange(FIRST, 1000))).astype(np.float64),
        "loss": np.concatenate((loss[: FIRST + ROWS], again, loss[FIRST + ROWS :])),
        "lr": np.concatenate((lr[: FIRST + ROWS], rate * lr[FIRST:])),
    })  # fmt: skip


def worse(by: float, *, first: float = 0.0) -> Floats:
    rng = np.random.default_rng(2)
    change = by * (1 + 0.3 * rng.standard_normal(ROWS))
    change[0] = first
    return change


def test_fires_where_the_same_start_is_left_for_the_worse() -> None:
    (finding,) = analyze(resumed(worse(0.05)))
    assert (finding.where.step, finding.where.last_step, finding.severity) == (500, 539, Severity.WARNING)
    assert finding.number("replayed_rows") == ROWS
    assert finding.number("replay_excess") == pytest.approx(0.05, rel=0.3)


def test_what_fades_counts_by_its_size() -> None:
    row = np.arange(ROWS)
    fading = 0.12 * 0.5 ** (row / 6) * (row > 0)
    change = fading + 0.01 * np.cos(2.2 * row) * (row > 0)  # the last rows differ either way
    assert 0.6 < float(np.mean(change[1:] > 0)) < 0.85
    (finding,) = analyze(resumed(np.asarray(change, dtype=np.float64), digits=6), least=0.02)
    assert finding.where.step == 500


@pytest.mark.parametrize(
    "change",
    [
        np.zeros(ROWS),
        worse(0.05, first=0.05),  # other weights or another batch
        worse(-0.05),
        np.concatenate(([0.0], 0.05 * np.random.default_rng(1).standard_normal(ROWS - 1))),
    ],
)
def test_quiet_where_the_replay_is_the_same_or_other_from_its_start(change: Floats) -> None:
    assert analyze(resumed(change)) == []


def test_another_rate_is_left_to_the_schedulers_check() -> None:
    assert analyze(resumed(worse(0.05), rate=2.0)) == []


def test_a_loss_of_few_digits_proves_no_same_batch() -> None:
    assert analyze(resumed(worse(0.05), digits=2)) == []


def test_thresholds_are_the_excess_and_the_chance() -> None:
    run = resumed(worse(0.05))
    assert analyze(run, least=5.0) == analyze(run, chance=1e-20) == []


def test_a_long_replay_is_judged_too() -> None:
    rows, loss = 1500, np.round(learning(3000), 6)
    again = np.round(loss[500 : 500 + rows] + np.r_[0.0, np.full(rows - 1, 0.05)], 6)
    (finding,) = analyze(view({
        "step": np.concatenate((np.arange(500 + rows), np.arange(500, 3000))).astype(np.float64),
        "loss": np.concatenate((loss[: 500 + rows], again, loss[500 + rows :])),
    }))  # fmt: skip
    assert finding.number("replayed_rows") == rows
