from __future__ import annotations

import numpy as np

from gdiag.analyzers import throttling_effect
from tests.analyzers.made_telemetry import Floats, card, noisy, timed, watched

SLOW = (np.arange(800) > 400) & (np.arange(800) % 100 < 50)


def following() -> Floats:
    """Step times that are a fifth longer while SLOW holds."""
    seconds, now = noisy(1700), 0.0
    for i in range(len(seconds)):
        seconds[i] *= 1.2 if SLOW[min(int(now // 5), 799)] else 1.0
        now += seconds[i]
    return seconds


def test_a_coupled_run_is_a_note() -> None:
    run = watched(
        timed(following()),
        [card(0), card(1, clock_sm=np.where(SLOW, 1650.0, 1980.0), reasons=np.where(SLOW, 32.0, 0.0))],
    )
    (finding,) = throttling_effect.analyze(run)
    assert (finding.number("clock_correlation") or 0) < -0.3
    assert finding.where.step is not None


def test_throttling_without_effect_is_quiet() -> None:
    run = watched(
        timed(noisy()), [card(0), card(1, clock_sm=np.where(SLOW, 1650.0, 1980.0), reasons=np.where(SLOW, 32.0, 0.0))]
    )
    assert throttling_effect.analyze(run) == []


def test_the_clocks_movement_is_a_threshold() -> None:
    run = watched(timed(following()), [card(0, clock_sm=np.where(SLOW, 1650.0, 1980.0))])
    assert throttling_effect.analyze(run, moved=0.5) == []
