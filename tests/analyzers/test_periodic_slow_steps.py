from __future__ import annotations

import numpy as np
import pytest

from gdiag.analyzers import periodic_slow_steps, slow_steps, step_time_drift, step_time_shift
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


@pytest.mark.parametrize(("period", "every"), [(100, 50), (40, 50), (20, 10), (15, 10), (75, 50), (333.3, 10)])
@pytest.mark.parametrize("form", ["sampled", "averaged", "stamps"])
@pytest.mark.parametrize("by", [1.6, 4.0, 20.0])
def test_a_pause_in_a_log_of_every_so_many_steps_is_no_slow_step(
    period: float, every: int, form: str, by: float
) -> None:
    seconds = noisy(16_000)
    seconds[np.round(np.arange(period, 16_000, period)).astype(int)] *= by
    step = np.arange(0, 16_000, every)
    end = np.cumsum(seconds)[step]
    logged = seconds[step] if form == "sampled" else np.append(seconds[0], np.diff(end) / every)
    columns: dict[str, made_runs.Values] = {"step": step, "loss": made_runs.learning(len(step)), "time": 1.7e9 + end}
    run = made_runs.view(columns if form == "stamps" else columns | {"step_time": logged})
    found = [f for check in (slow_steps, step_time_shift, step_time_drift) for f in check.analyze(run)]
    assert [f.message for f in found if f.severity > Severity.INFO] == []


def test_a_period_shorter_than_the_log_interval_is_said_to_be_one_of_several() -> None:
    seconds = noisy(10_000)
    seconds[60::60] *= 60
    averaged = seconds.reshape(-1, 50).mean(axis=1)
    (finding,) = periodic_slow_steps.analyze(made_runs.view({"step": 50 * np.arange(200), "step_time": averaged}))
    assert finding.number("period") == pytest.approx(60, rel=0.02)
    assert finding.number("log_interval") == 50
    assert "or oftener" in finding.message
