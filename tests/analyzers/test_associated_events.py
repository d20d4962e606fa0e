from __future__ import annotations

import numpy as np
import polars as pl

from gdiag.analyzers import associated_events
from gdiag.model import Severity
from gdiag.schema import TABLES
from tests.analyzers import made_runs
from tests.analyzers.made_telemetry import noisy, timed


def saved(steps: list[int]) -> pl.DataFrame:
    types = TABLES["events"]
    rows = [
        {c: {"run": "run", "source": 0, "line": 1, "kind": "checkpoint", "step": s}.get(c) for c in types}
        for s in steps
    ]
    return pl.DataFrame(rows, schema=types)


AT = [151, 420, 611, 902, 1203, 1400, 1777]


def test_slow_steps_after_checkpoints_are_a_note_with_the_chance_beside_it() -> None:
    seconds = noisy()
    seconds[np.array(AT) + 1] *= 3
    run = made_runs.view(timed(seconds, loss=made_runs.learning(2000)), events=saved(AT))
    (finding,) = associated_events.analyze(run)
    assert finding.severity is Severity.INFO
    assert (finding.measure("first"), finding.measure("then")) == ("checkpoints", "slow steps")
    assert finding.number("followed") == 7
    assert (finding.number("chance") or 100) < 10


def test_events_that_merely_share_a_run_are_not() -> None:
    seconds = noisy()
    seconds[[250, 530, 700, 1000, 1300, 1600, 1900]] *= 3
    run = made_runs.view(timed(seconds, loss=made_runs.learning(2000)), events=saved(AT))
    assert associated_events.analyze(run) == []


def test_the_error_rate_is_a_threshold() -> None:
    seconds = noisy()
    seconds[np.array(AT) + 1] *= 3
    run = made_runs.view(timed(seconds, loss=made_runs.learning(2000)), events=saved(AT))
    assert associated_events.analyze(run, q=1e-6) == []
