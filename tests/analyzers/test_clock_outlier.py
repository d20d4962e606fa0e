from __future__ import annotations

import numpy as np

from gdiag.analyzers import clock_outlier
from gdiag.model import Severity
from tests.analyzers.made_telemetry import card, noisy, timed, watched


def test_a_slow_gpu_among_peers_is_named() -> None:
    run = watched(timed(noisy()), [*(card(g) for g in range(7)), card(7, clock_sm=1700.0)])
    (finding,) = clock_outlier.analyze(run)
    assert finding.where.gpu == 7
    assert finding.number("clock_peers") == 1980
    assert finding.number("slow_share") == 100


def test_equal_clocks_are_quiet_however_low() -> None:
    assert clock_outlier.analyze(watched(timed(noisy()), [card(g, clock_sm=1410.0) for g in range(8)])) == []


def test_a_reported_reason_explains_it() -> None:
    run = watched(timed(noisy()), [*(card(g) for g in range(7)), card(7, clock_sm=1700.0, reasons=32.0)])
    assert clock_outlier.analyze(run) == []


def test_too_few_peers_say_nothing() -> None:
    assert clock_outlier.analyze(watched(timed(noisy()), [card(0), card(1, clock_sm=1500.0)])) == []


def test_the_ratio_is_a_threshold() -> None:
    run = watched(timed(noisy()), [*(card(g) for g in range(7)), card(7, clock_sm=1700.0)])
    assert clock_outlier.analyze(run, ratio=0.8) == []


def test_below_their_own_past_and_nothing_at_its_limit_is_a_note_that_says_what_is_lacking() -> None:
    late = np.arange(800) >= 500
    locked = {"clock_sm": np.where(late, 1200.0, 1980.0), "power": np.where(late, 320.0, 640.0)}
    (finding,) = clock_outlier.analyze(
        watched(timed(noisy()), [card(g, more=locked).drop("reasons") for g in range(2)])
    )
    assert finding.severity is Severity.INFO
    assert finding.message.startswith("all 2 GPUs run at 1200 MHz under load, earlier at 1980 MHz")
    assert "without event reasons" in finding.message
