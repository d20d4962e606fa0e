from __future__ import annotations

import numpy as np

from gdiag.analyzers import step_time_shift
from gdiag.model import Severity
from tests.analyzers import made_runs
from tests.analyzers.made_telemetry import noisy, timed


def shifted(at: int = 1200, by: float = 1.2, until: int | None = None) -> made_runs.Floats:
    seconds = noisy()
    seconds[at:until] *= by
    return seconds


def test_a_shift_is_found_with_its_place_and_size() -> None:
    (finding,) = step_time_shift.analyze(made_runs.view(timed(shifted())))
    assert finding.severity is Severity.WARNING
    assert finding.where.step is not None
    assert abs(finding.where.step - 1200) <= 5
    assert finding.where.time is not None
    assert abs((finding.number("ratio") or 0) - 1.2) < 0.01
    assert finding.measure("recovered") is False
    assert finding.measure("share") == "unknown"


def test_a_bump_says_that_it_returned() -> None:
    (finding,) = step_time_shift.analyze(made_runs.view(timed(shifted(800, 1.3, 1300))))
    assert finding.measure("recovered") is True
    assert finding.where.last_step is not None
    assert abs(finding.where.last_step - 1300) <= 10


def test_a_steady_run_is_quiet() -> None:
    assert step_time_shift.analyze(made_runs.view(timed(noisy()))) == []


def test_a_faster_run_is_no_fault() -> None:
    assert step_time_shift.analyze(made_runs.view(timed(shifted(by=0.7)))) == []


def test_the_floor_is_a_threshold() -> None:
    run = made_runs.view(timed(shifted(by=1.08)))
    assert len(step_time_shift.analyze(run)) == 1
    assert step_time_shift.analyze(run, floor=0.15) == []


def test_a_larger_batch_explains_it() -> None:
    batch = np.where(np.arange(2000) < 1200, 256.0, 320.0)
    (finding,) = step_time_shift.analyze(made_runs.view(timed(shifted(by=1.25), batch_size=batch)))
    assert finding.severity is Severity.INFO
    assert finding.number("load_ratio") == 1.25
