"""GD009: long stand-stills."""

from __future__ import annotations

import numpy as np

from gdiag.analyzers.hang import analyze
from gdiag.model import Severity
from tests.analyzers.made_runs import Floats, learning, view


def clock(pauses: dict[int, float]) -> Floats:
    step = np.full(1000, 2.0)
    for row, seconds in pauses.items():
        step[row] = seconds
    return 1e9 + np.cumsum(step)


def test_a_long_pause() -> None:
    run = view({"loss": learning(), "time": clock({600: 3600})})
    (finding,) = analyze(run)
    assert finding.severity is Severity.INFO
    assert (finding.where.step, finding.where.last_step) == (599, 600)
    assert finding.number("pause") == 3600
    assert analyze(run, seconds=7200) == []


def test_quiet_on_checkpoints() -> None:
    assert analyze(view({"loss": learning(), "time": clock({100: 700, 400: 700, 700: 700})})) == []
    assert analyze(view({"loss": learning(), "time": clock({})})) == []


def test_quiet_before_the_second_row() -> None:
    assert analyze(view({"loss": learning(), "time": clock({1: 900})})) == []
