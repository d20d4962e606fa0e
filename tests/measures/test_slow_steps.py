from __future__ import annotations

import numpy as np
import pytest

from gdiag.measures import slow_steps
from gdiag.measures.step_time import StepTimes, step_times
from tests.analyzers import made_runs
from tests.analyzers.made_telemetry import noisy


def times(seconds: made_runs.Floats) -> StepTimes:
    found = step_times(made_runs.view({"step_time": seconds}).paths[0].frame)
    assert found is not None
    return found


@pytest.mark.parametrize("period", [10.0, 190.03, 250.0])
def test_a_float_period_is_found(period: float) -> None:
    seconds = noisy(3000)
    ticks = np.round(np.arange(40, 3000, period)).astype(int)
    seconds[ticks] *= 3
    t = times(seconds)
    rhythm = slow_steps.rhythms(t, slow_steps.slow_steps(t))[0]
    assert rhythm.period == pytest.approx(period, rel=2e-3)
    assert rhythm.coverage > 0.9


@pytest.mark.parametrize("seed", range(8))
def test_irregular_slow_steps_have_no_rhythm(seed: int) -> None:
    rng = np.random.default_rng(seed)
    seconds = noisy(3000, seed=seed)
    seconds[rng.choice(np.arange(100, 3000), 60, replace=False)] *= rng.uniform(1.6, 4, 60)
    t = times(seconds)
    assert slow_steps.rhythms(t, slow_steps.slow_steps(t)) == []


def test_two_rhythms_of_different_height_are_told_apart() -> None:
    seconds = noisy(3000)
    seconds[200::200] *= 4
    seconds[[137, 333, 911, 1622, 2801]] *= 1.4
    t = times(seconds)
    slow = slow_steps.slow_steps(t)
    (rhythm,) = slow_steps.rhythms(t, slow)
    assert rhythm.period == pytest.approx(200)
    assert len(slow.at) - len(rhythm.hits) == 5


def test_a_skewed_machine_is_not_slow_steps() -> None:
    rng = np.random.default_rng(0)
    seconds = 2.0 * np.exp(0.15 * rng.standard_gamma(2.0, 3000))
    assert len(slow_steps.slow_steps(times(seconds)).at) < 15


def test_the_onset_is_where_slow_steps_become_frequent() -> None:
    at = np.array([90, 1500, *range(1510, 2900, 30)])
    assert at[slow_steps.onset(at, 3000)] in (1500, 1510)
    assert slow_steps.onset(np.arange(50, 3000, 60), 3000) == 0
    assert slow_steps.onset(np.array([767, 773, 781, 790, 900, 950, 1000, 1100]), 1200) == 0


def test_known_intervals_match_within_one_percent() -> None:
    assert slow_steps.matched(500.2, {"save_interval": 500.0}) == ("save_interval", 500.0)
    assert slow_steps.matched(1000.0, {"save_interval": 500.0}) == ("save_interval", 500.0)
    assert slow_steps.matched(520.0, {"save_interval": 500.0}) is None
    assert slow_steps.matched(75.0, {"eval_interval": 30.0}) is None
    assert slow_steps.matched(75.0, {"eval_interval": 30.0}, 50.0) == ("eval_interval", 30.0)
    assert slow_steps.matched(75.0, {"eval_interval": 40.0}, 50.0) is None
    # Every row holds two pauses of such an interval: none has one more.
    assert slow_steps.matched(1000.0, {"save_interval": 3.0}, 10.0) is None
    assert slow_steps.matched(1003.0, {"eval_interval": 5.0}, 10.0) is None


@pytest.mark.parametrize(("every", "period", "seen"), [(50, 40, 200), (10, 190.03, 190), (50, 1000, 1000)])
def test_a_rhythm_in_a_log_of_every_so_many_steps(every: int, period: float, seen: float) -> None:
    """Only steps that are logged are seen: a period that is no multiple of the interval shows as one that is."""
    seconds = noisy(16_000)
    seconds[np.round(np.arange(period, 16_000, period)).astype(int)] *= 4
    step = np.arange(0, 16_000, every)
    t = step_times(made_runs.view({"step": step, "step_time": seconds[step]}).paths[0].frame)
    assert t is not None
    slow = slow_steps.slow_steps(t)
    (rhythm,) = slow_steps.rhythms(t, slow)
    assert rhythm.period == pytest.approx(seen, rel=2e-3)
    assert len(rhythm.hits) == len(slow.at)
