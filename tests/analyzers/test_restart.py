"""GD003: restarts are information."""

from __future__ import annotations

import numpy as np

from gdiag.analyzers.restart import analyze
from gdiag.model import Severity
from tests.analyzers.made_runs import learning, view


def test_a_clean_resume() -> None:
    step = np.concatenate([np.arange(500), np.arange(450, 1000)])
    time = 1e9 + np.arange(1050) * 2.0 + 600 * (np.arange(1050) >= 500)
    (finding,) = analyze(view({"step": step, "loss": learning(1050), "time": time}))
    assert finding.severity is Severity.INFO
    assert (finding.where.step, finding.where.line) == (450, 501)
    assert finding.number("steps_lost") == 50
    assert finding.number("pause") == 602


def test_a_rewind_of_one_step_is_told_in_the_singular() -> None:
    step = np.concatenate([np.arange(500), np.arange(499, 1000)])
    time = 1e9 + np.arange(1001) * 2.0 + 600 * (np.arange(1001) >= 500)
    lr = np.full(1001, 1e-3)
    (finding,) = analyze(view({"step": step, "loss": learning(1001), "time": time, "lr": lr}))
    assert "(1 step trained twice)" in finding.message


def test_quiet_without_restart() -> None:
    assert analyze(view({"loss": learning()})) == []


def test_threshold_bounds_the_list() -> None:
    step = np.concatenate([np.arange(100 * i, 100 * i + 120) for i in range(20)])
    run = view({"step": step, "loss": learning(len(step))})
    assert len(analyze(run)) == 10
    assert len(analyze(run, most=3)) == 3
