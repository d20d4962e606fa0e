"""GD003: restarts are information."""

from __future__ import annotations

import numpy as np

from gdiag.analyzers.restart import analyze
from gdiag.measures.run import RunView
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


def _looping(*ends: int) -> RunView:
    """A run that comes back to step 500 after each of `ends`, 2 s a step and 5 min a restart."""
    parts = [np.arange(ends[0] + 1), *(np.arange(500, end + 1) for end in ends[1:]), np.arange(500, 900)]
    pauses = np.concatenate([[300.0 * i] * len(part) for i, part in enumerate(parts)])
    step = np.concatenate(parts)
    return view({"step": step, "loss": learning(len(step)), "time": 1e9 + 2.0 * np.arange(len(step)) + pauses})


def test_restarts_from_one_step_are_a_crash_loop() -> None:
    (finding,) = analyze(_looping(509, 514, 520))
    assert (finding.severity, finding.where.step, finding.where.last_step) == (Severity.WARNING, 500, 520)
    assert (finding.number("restarts"), finding.measure("same_step"), finding.number("steps_lost")) == (3, False, 46)
    assert finding.number("seconds_lost") == 2 * 300 + 36 * 2 + 302
    (finding,) = analyze(_looping(512, 512, 513, 512))
    assert (finding.number("restarts"), finding.measure("same_step")) == (4, True)
    assert finding.message == "Run restarts 4 times from step 500: the attempts end each after step 513"


def test_two_restarts_from_one_step_are_no_loop() -> None:
    assert {f.severity for f in analyze(_looping(509, 514))} == {Severity.INFO}
    assert [f.severity for f in analyze(_looping(509, 514), loop=2)] == [Severity.WARNING]


def test_starting_again_from_nothing_is_no_loop() -> None:
    step = np.concatenate([np.arange(40), np.arange(40), np.arange(40), np.arange(900)])
    assert {f.severity for f in analyze(view({"step": step, "loss": learning(len(step))}))} == {Severity.INFO}


def test_a_loop_is_told_however_many_restarts_follow() -> None:
    loop = [np.arange(0, 510), *([np.arange(500, 512)] * 3), np.arange(500, 600)]
    single = [np.arange(550 + 40 * i, 610 + 40 * i) for i in range(12)]
    step = np.concatenate([*loop, *single])
    found = analyze(view({"step": step, "loss": learning(len(step))}))
    assert [f.severity for f in found] == [Severity.WARNING] + [Severity.INFO] * 10


def test_quiet_without_restart() -> None:
    assert analyze(view({"loss": learning()})) == []


def test_threshold_bounds_the_list() -> None:
    step = np.concatenate([np.arange(100 * i, 100 * i + 120) for i in range(20)])
    run = view({"step": step, "loss": learning(len(step))})
    assert len(analyze(run)) == 10
    assert len(analyze(run, most=3)) == 3
