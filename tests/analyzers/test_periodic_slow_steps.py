from __future__ import annotations

import pytest

from gdiag.analyzers import periodic_slow_steps, slow_steps
from gdiag.model import Severity
from tests.analyzers import made_runs
from tests.analyzers.made_telemetry import noisy, timed


def pausing(period: int = 250, by: float = 4.0) -> made_runs.Floats:
    seconds = noisy()
    seconds[period::period] *= by
    return seconds


def test_a_checkpoint_pause_is_a_note_with_its_period() -> None:
    run = made_runs.view(timed(pausing()), save_interval=250)
    (finding,) = periodic_slow_steps.analyze(run)
    assert finding.severity is Severity.INFO
    assert finding.number("period") == pytest.approx(250, abs=0.1)
    assert "checkpoint" in str(finding.measure("matches"))
    assert slow_steps.analyze(run) == []


def test_a_period_that_nothing_explains_is_still_a_period() -> None:
    (finding,) = periodic_slow_steps.analyze(made_runs.view(timed(pausing(173))))
    assert finding.measure("matches") is None


def test_a_steady_run_is_quiet() -> None:
    assert periodic_slow_steps.analyze(made_runs.view(timed(noisy()))) == []
