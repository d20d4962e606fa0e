"""GD006: two processes in one log."""

from __future__ import annotations

import numpy as np

from gdiag.analyzers.several_writers import analyze
from gdiag.model import Severity
from tests.analyzers.made_runs import learning, view


def test_writers_that_take_turns_are_a_warning() -> None:
    step = np.stack([np.arange(1000, 1500), np.arange(500)], axis=1).ravel()
    (finding,) = analyze(view({"step": step, "loss": learning()}))
    assert finding.severity is Severity.WARNING
    assert finding.number("writers") == 2


def test_several_losses_of_one_step_are_information() -> None:
    run = view({"step": np.repeat(np.arange(500), 2), "loss": learning()})
    (finding,) = analyze(run)
    assert finding.severity is Severity.INFO
    assert analyze(run, share=1.1) == []


def test_quiet_on_one_writer_and_on_a_restart() -> None:
    assert analyze(view({"loss": learning()})) == []
    step = np.concatenate([np.arange(500), np.arange(450, 950)])
    assert analyze(view({"step": step, "loss": learning()})) == []


def test_quiet_on_restarts_that_train_the_last_step_again() -> None:
    step = np.concatenate([np.arange(9 * k, 9 * k + 10) for k in range(30)])
    time = 1e9 + 2.0 * np.arange(300) + 300.0 * (np.arange(300) // 10)
    run = view({"step": step, "loss": learning(300), "time": time, "lr": np.full(300, 1e-3)})
    assert analyze(run, share=0.05) == []
    assert len(run.trajectory.restarts) == 29
