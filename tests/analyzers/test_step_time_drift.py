from __future__ import annotations

import numpy as np

from gdiag.analyzers import step_time_drift, step_time_shift
from gdiag.model import Severity
from tests.analyzers import made_runs
from tests.analyzers.made_telemetry import noisy, timed


def drifting(by: float = 0.3, at: int = 800) -> made_runs.Floats:
    seconds = noisy()
    seconds[at:] *= np.linspace(1, 1 + by, len(seconds) - at)
    return seconds


def test_a_climb_is_a_drift_and_no_shift() -> None:
    run = made_runs.view(timed(drifting()))
    (finding,) = step_time_drift.analyze(run)
    assert finding.severity is Severity.WARNING
    assert finding.where.step is not None
    assert abs(finding.where.step - 800) < 200
    assert step_time_shift.analyze(run) == []


def test_a_steady_run_is_quiet() -> None:
    assert step_time_drift.analyze(made_runs.view(timed(noisy()))) == []


def test_the_floor_is_a_threshold() -> None:
    run = made_runs.view(timed(drifting(0.12)))
    assert len(step_time_drift.analyze(run)) == 1
    assert step_time_drift.analyze(run, floor=0.2) == []


def test_a_growing_window_is_by_design() -> None:
    window = np.append(np.full(800, 1000.0), np.linspace(1000, 1300, 1200).round())
    (finding,) = step_time_drift.analyze(made_runs.view(timed(drifting(), seq_len=window)))
    assert finding.severity is Severity.INFO


def test_compute_time_is_named() -> None:
    seconds = drifting()
    comm = np.full(2000, 0.3)
    (finding,) = step_time_drift.analyze(made_runs.view(timed(seconds, compute_time=seconds - comm, comm_time=comm)))
    assert finding.measure("share") == "compute"
