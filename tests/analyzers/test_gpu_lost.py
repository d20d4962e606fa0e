from __future__ import annotations

import polars as pl

from gdiag.analyzers import gpu_lost
from gdiag.model import Severity
from gdiag.schema import TABLES
from tests.analyzers import made_runs
from tests.analyzers.made_telemetry import card, noisy, timed, watched


def test_a_gpu_that_falls_silent_is_lost() -> None:
    (finding,) = gpu_lost.analyze(watched(timed(noisy()), [card(0), card(1, seconds=2400.0), card(2)]))
    assert finding.severity is Severity.CRITICAL
    assert finding.where.gpu == 1
    assert finding.where.step is not None
    assert abs(finding.where.step - 1197) <= 5


def test_all_ending_together_is_the_end_of_the_log() -> None:
    assert gpu_lost.analyze(watched(timed(noisy()), [card(0), card(1, seconds=3985.0)])) == []


def test_another_host_that_ends_earlier_is_not_lost() -> None:
    assert gpu_lost.analyze(watched(timed(noisy()), [card(0), card(0, seconds=2000.0, host="node-2")])) == []


def test_a_line_that_says_so_is_a_finding() -> None:
    events = pl.DataFrame(
        {
            "run": ["run"],
            "source": [0],
            "line": [7],
            "kind": ["gpu_lost"],
            "text": ["GPU 0000:1B:00.0: GPU is lost."],
            "bus_id": ["0000:1b:00"],
        }
    )
    events = events.select(
        (pl.col(c) if c in events.columns else pl.lit(None)).cast(t).alias(c) for c, t in TABLES["events"].items()
    )
    (finding,) = gpu_lost.analyze(made_runs.view({"loss": [1.0, 2.0]}, events=events))
    assert finding.where.line == 7
    assert finding.measure("bus_id") == "0000:1b:00"


def test_the_silence_is_a_threshold() -> None:
    run = watched(timed(noisy()), [card(0), card(1, seconds=3800.0)])
    assert len(gpu_lost.analyze(run)) == 1
    assert gpu_lost.analyze(run, seconds=500.0) == []
