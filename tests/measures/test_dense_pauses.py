"""Pauses in about every second logged row, told from random slow rows and from shifts."""

from __future__ import annotations

import numpy as np
import pytest

from gdiag.measures import dense_pauses, slowdowns
from gdiag.measures.dense_pauses import Dense
from gdiag.measures.step_time import step_times
from tests.analyzers import made_runs
from tests.analyzers.made_runs import Floats
from tests.analyzers.made_telemetry import noisy


def averaged(period: float, every: int, height: float = 10.0, rows: int = 300) -> Floats:
    """Seconds per step of each logged row, the mean of `every` steps, where a pause comes every `period` steps."""
    seconds = noisy(rows * every, seed=3)
    seconds[np.round(np.arange(period, rows * every, period)).astype(int)] += height
    return np.asarray(seconds.reshape(rows, every).mean(axis=1))


def found(seconds: Floats) -> Dense | None:
    return dense_pauses.find(np.log(seconds), np.ones(len(seconds), dtype=bool), float(np.log(1.25)))


@pytest.mark.parametrize(
    ("period", "every"), [(15, 10), (20, 10), (25, 10), (13.7, 10), (75, 50), (100, 50), (120, 50)]
)
def test_the_period_of_pauses_in_averaged_rows(period: float, every: int) -> None:
    dense = found(averaged(period, every, height=2.0 * every))
    assert dense is not None
    assert every / dense.share == pytest.approx(period, rel=0.02)
    assert dense.evenness > 0.95


@pytest.mark.parametrize("share", [0.3, 0.5, 0.7])
@pytest.mark.parametrize("seed", range(4))
def test_random_slow_rows_are_not_even(share: float, seed: int) -> None:
    seconds = noisy(400, seed=seed)
    seconds[np.random.default_rng(seed).random(400) < share] *= 2
    assert found(seconds) is None


def test_a_shift_is_no_pause() -> None:
    seconds = noisy(400)
    seconds[200:] *= 2
    assert found(seconds) is None
    seconds[:] = noisy(400)
    assert found(seconds) is None


def test_too_small_a_pause_is_left_to_the_noise() -> None:
    assert found(averaged(20, 10, height=2.0)) is None


def view(seconds: Floats) -> slowdowns.StepTimeView:
    times = step_times(made_runs.view({"step": 10 * np.arange(len(seconds)), "step_time": seconds}).paths[0].frame)
    assert times is not None
    return slowdowns.view(times)


def test_a_stall_and_a_shift_beside_dense_pauses_are_still_seen() -> None:
    seconds = averaged(20, 10, height=20.0, rows=600)
    seconds[400:] *= 1.3
    seconds[[150, 251]] *= 5
    seen = view(seconds)
    ((rhythm, slow),) = seen.rhythms
    assert rhythm.period == pytest.approx(20, rel=0.02)
    assert slow.ratio == pytest.approx(2, rel=0.05)
    assert [(c.kind, abs(c.start - 400) <= 3) for c in seen.changes] == [("shift", True)]
    assert [s.rows.tolist() for s in seen.slow] == [[150, 251]]
