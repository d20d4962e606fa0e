"""GD009: long stand-stills."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from gdiag.analyzers.hang import analyze
from gdiag.model import Severity
from gdiag.schema import TABLES
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


def happened(kind: str, step: int, time: float | None = None) -> pl.DataFrame:
    return pl.DataFrame([{"run": "run", "kind": kind, "step": step, "time": time}], schema=TABLES["events"])


@pytest.mark.parametrize(("kind", "step"), [("restart", 599), ("restart", 600), ("exit", 599)])
def test_a_wait_between_two_launches_is_no_hang(kind: str, step: int) -> None:
    run = {"loss": learning(), "time": clock({600: 7200})}
    assert analyze(view(run, events=happened(kind, step))) == []
    assert len(analyze(view(run, events=happened(kind, 300)))) == 1
    assert len(analyze(view(run, events=happened("checkpoint", 599)))) == 1


def test_a_clock_set_back_is_a_restart() -> None:
    elapsed = np.concatenate((2.0 * np.arange(600), 2.0 * np.arange(400)))
    assert analyze(view({"loss": learning(), "time": clock({600: 7200}), "elapsed": elapsed})) == []


def test_a_rewind_is_a_restart() -> None:
    step = np.concatenate((np.arange(600), np.arange(590, 990)))
    assert analyze(view({"step": step, "loss": learning(), "time": clock({600: 7200})})) == []


def test_a_row_without_a_loss_after_the_rewind_does_not_hide_it() -> None:
    """A resumed run may evaluate before its first step."""
    step = np.concatenate((np.arange(600), [589], np.arange(590, 989)))
    loss = np.where(np.arange(1000) == 600, np.nan, learning())
    run = view({"step": step, "loss": [None if np.isnan(v) else v for v in loss], "eval_loss": [3.0 if i == 600 else None for i in range(1000)],
                "time": clock({600: 7200})})  # fmt: skip
    assert analyze(run) == []


def test_a_timeout_inside_the_wait_is_still_said() -> None:
    time = clock({600: 7200})
    events = pl.concat([happened("nccl_timeout", 599, float(time[599]) + 1800), happened("restart", 599)])
    (finding,) = analyze(view({"loss": learning(), "time": time}, events=events))
    assert finding.severity is Severity.WARNING


def waiting(*ranks: int, seq: bool = True) -> pl.DataFrame:
    work = (
        "WorkNCCL(SeqNum=78, OpType=ALLREDUCE, NumelIn=8, NumelOut=8, Timeout(ms)=600000) ran for 600096 milliseconds"
    )
    text = f"Watchdog caught collective operation timeout{f': {work} before timing out.' if seq else ''}"
    rows = [
        {"run": "run", "source": 0, "kind": "nccl_timeout", "step": 999, "rank": rank, "text": text} for rank in ranks
    ]
    return pl.DataFrame(rows, schema=TABLES["events"])


@pytest.mark.parametrize(
    ("ranks", "said", "rank"),
    [
        ((3,), "rank 3 waits in ALLREDUCE 78; the log does not tell for which rank", 3),
        ((3, 12, 29), "ranks 3, 12 and 29 wait in ALLREDUCE 78; the log does not tell for which rank", None),
        ((0, 1, 2, 3, 4, 6, 7), "7 ranks (0–4, 6 and 7) wait for rank 5 in ALLREDUCE 78", 5),
        ((0, 1, 2, 4, 5, 7), "6 ranks (0–2, 4, 5 and 7) wait in ALLREDUCE 78, ranks 3 and 6 not among them", None),
    ],
)  # fmt: skip
def test_all_that_wait_are_named_and_whom_they_wait_for(ranks: tuple[int, ...], said: str, rank: int | None) -> None:
    (finding,) = analyze(view({"loss": learning()}, events=waiting(*ranks)))
    assert finding.message == f"A collective times out at step 999 after 600 s: {said}"
    assert finding.where.rank == rank
    assert finding.number("waited") == 600.096


def test_lines_without_the_collective_name_who_waits() -> None:
    (finding,) = analyze(view({"loss": learning()}, events=waiting(2, 5, seq=False)))
    assert (
        finding.message
        == "A collective times out at step 999: ranks 2 and 5 wait; the log does not tell for which rank"
    )
    assert finding.measure("collective") is None


def test_where_every_rank_of_the_job_waits_none_is_missing() -> None:
    columns = {
        "step": np.repeat(np.arange(100), 2),
        "rank": np.tile([0, 1], 100),
        "loss": np.repeat(learning()[:100], 2),
    }
    (finding,) = analyze(view(columns, events=waiting(0, 1)))
    assert finding.message.endswith("all 2 ranks wait in ALLREDUCE 78, none is missing")
