from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from gdiag.measures import levels

Floats = NDArray[np.float64]


def quiet(seed: int, n: int = 3000, noise: float = 0.01) -> Floats:
    rng = np.random.default_rng(seed)
    y = noise * rng.standard_normal(n)
    y[rng.random(n) < 0.003] += 0.8
    y[::300] += 1.1
    return np.asarray(y)


@pytest.mark.parametrize("seed", range(6))
def test_stalls_and_checkpoints_are_no_change(seed: int) -> None:
    found = levels.find(2.4 * np.exp(quiet(seed)))
    assert found.changes == ()
    assert found.noise == pytest.approx(0.01, rel=0.3)


@pytest.mark.parametrize(("size", "at"), [(0.07, 900), (0.1, 2400), (0.4, 1500)])
def test_a_shift_is_placed_to_the_step(size: float, at: int) -> None:
    y = quiet(1)
    y[at:] += np.log1p(size)
    (change,) = levels.find(np.exp(y)).changes
    assert change.kind == "shift"
    assert abs(change.start - at) <= 5
    assert change.ratio == pytest.approx(1 + size, rel=0.02)
    assert change.end == len(y) - 1


@pytest.mark.parametrize(("size", "period"), [(0.34, 21), (0.25, 33), (0.3, 17)])
def test_a_clock_that_begins_to_swing_is_a_shift_at_that_step(size: float, period: int) -> None:
    y = 0.01 * np.random.default_rng(4).standard_normal(1500)
    y[680:] += np.where(np.arange(820) % period < 0.6 * period, np.log1p(size), 0.06)
    change = levels.find(np.exp(y)).changes[0]
    assert change.kind == "shift"
    assert abs(change.start - 680) <= period


def test_a_bump_ends_where_the_old_level_returns() -> None:
    y = quiet(2)
    y[1000:1700] += 0.15
    first = levels.find(np.exp(y)).changes[0]
    assert first.kind == "bump"
    assert abs(first.start - 1000) <= 5
    assert abs(first.end - 1700) <= 10


@pytest.mark.parametrize(("size", "at"), [(0.12, 1000), (0.35, 1400), (0.1, 2400)])
def test_a_drift_begins_near_its_corner(size: float, at: int) -> None:
    y = quiet(3)
    y[at:] += np.log1p(size) * np.linspace(0, 1, len(y) - at)
    (change,) = levels.find(np.exp(y)).changes
    assert change.kind == "drift"
    assert abs(change.start - at) < 300


def test_a_change_below_the_floor_is_silence() -> None:
    y = quiet(4)
    y[1500:] += 0.03
    assert levels.find(np.exp(y)).changes == ()
    assert len(levels.find(np.exp(y), floor=0.02).changes) == 1


def test_warm_up_steps_are_left_out() -> None:
    y = quiet(5)
    y[:80] += 0.5
    judged = np.ones(len(y), dtype=bool)
    judged[:80] = False
    assert levels.find(np.exp(y), judged).changes == ()


def test_short_series_are_not_judged() -> None:
    assert levels.find(np.ones(20)).changes == ()


@settings(max_examples=25, deadline=None)
@given(scale=st.floats(1e-6, 1e6), seed=st.integers(0, 50))
def test_the_unit_does_not_matter(scale: float, seed: int) -> None:
    y = quiet(seed, 800)
    y[400:] += 0.2
    one, other = levels.find(np.exp(y)).changes, levels.find(scale * np.exp(y)).changes
    assert [(c.kind, c.start) for c in one] == [(c.kind, c.start) for c in other]
