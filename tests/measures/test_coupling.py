from __future__ import annotations

import numpy as np
import pytest

from gdiag.measures import coupling
from tests.analyzers.made_telemetry import card, noisy, timed, watched


def test_step_time_that_follows_the_clock_is_told() -> None:
    slow = np.arange(800) % 100 < 40
    factor = np.repeat(np.where(slow, 1.15, 1.0), 3)[:2000]
    seconds = noisy() * np.interp(
        np.arange(2000) * 2.1, np.arange(2400) * 5 / 3, np.repeat(np.where(slow, 1.15, 1.0), 3)
    )
    assert len(factor) == 2000
    run = watched(timed(seconds), [card(0), card(1, clock_sm=np.where(slow, 1700.0, 1980.0))])
    found = run.coupling
    assert found is not None
    assert found.correlation < -0.4
    assert found.high < 0


def test_a_constant_clock_says_nothing() -> None:
    assert watched(timed(noisy()), [card(0), card(1)]).coupling is None


def test_an_unrelated_clock_is_not_coupled() -> None:
    clock = np.random.default_rng(3).choice([1800.0, 1980.0], 800)
    found = watched(timed(noisy()), [card(0, clock_sm=clock)]).coupling
    assert found is not None
    assert found.low < 0 < found.high


def test_a_common_trend_is_taken_out() -> None:
    rng = np.random.default_rng(0)
    t = np.linspace(0, 1, 300)
    a, b = t + 0.05 * rng.standard_normal(300), t + 0.05 * rng.standard_normal(300)
    assert abs(coupling.partial_rank(a, b)) < 0.2
    assert coupling.partial_rank(a, -a) == pytest.approx(-1.0)
