"""GD008: what the log says about the end."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from gdiag.analyzers.abnormal_exit import analyze
from gdiag.measures.run import RunView
from gdiag.model import Exit, Severity
from gdiag.schema import TABLES
from tests.analyzers.made_runs import learning, view


def ended(kind: str, exit_: Exit, step: int | None = None, text: str = "CUDA out of memory") -> RunView:
    event = {"run": ["run"], "source": [0], "line": [2000], "kind": [kind], "step": [step], "text": [text]}
    columns = {**{c: [None] for c in TABLES["events"]}, **event}
    events = pl.DataFrame(columns, schema_overrides=TABLES["events"])
    run = view({"loss": learning()}, events=events)
    return RunView(replace(run.run, exit=exit_), run.records)


def test_out_of_memory() -> None:
    (finding,) = analyze(ended("oom", "abnormal"))
    assert finding.severity is Severity.WARNING
    assert finding.message == "Run ends abnormally with out of memory at step 999"
    assert finding.measure("text") == "CUDA out of memory"
    assert analyze(ended("oom", "abnormal"), most_text=4)[0].measure("text") == "CUDA"


def test_a_fatal_event_after_the_last_row_is_an_end() -> None:
    assert len(analyze(ended("nccl_timeout", "unknown"))) == 1


def test_quiet_on_a_clean_exit_and_on_an_event_before_the_end() -> None:
    assert analyze(ended("exit", "clean")) == []
    assert analyze(ended("oom", "unknown", step=500)) == []


def test_a_run_stopped_by_hand_is_context() -> None:
    (finding,) = analyze(ended("exit", "abnormal", text="exit code 255: KeyboardInterrupt"))
    assert finding.severity is Severity.INFO
    assert finding.message == "Run is stopped by hand at step 999"
    assert finding.measure("by_hand") is True
    assert analyze(ended("oom", "abnormal", text="KeyboardInterrupt"))[0].severity is Severity.WARNING


def test_a_missing_exit_record_is_context() -> None:
    (finding,) = analyze(ended("exit", "unknown", text="no exit record"))
    assert finding.severity is Severity.INFO
    assert finding.message == "Log ends without an exit record after step 999: the run was killed or is still going"
    assert finding.measure("exit_recorded") is False


def test_a_connection_that_nccl_lost_is_an_end_and_its_advice_is_not() -> None:
    text = "NCCL WARN NET/IB : Got completion from peer 10.2.0.5<33092> with error 12, opcode 0"
    (finding,) = analyze(ended("nccl_warning", "unknown", text=text))
    assert "a failed connection or transfer of NCCL" in finding.message
    assert finding.measure("text") == text
    assert analyze(ended("nccl_warning", "unknown", step=500, text=text)) == []
    assert analyze(ended("nccl_warning", "unknown", text="NCCL WARN Missing iommu=pt from kernel command line")) == []


def test_a_crash_in_nccl_is_no_lost_connection() -> None:
    text = "pt_main_thread[2536443]: segfault at 7f797fe00000 ip 00007f7c7ac69996 error 4 in libnccl.so.2[7f7c7ac00000+d3d3000]"
    (finding,) = analyze(ended("nccl_warning", "unknown", text=text))
    assert finding.message == "Run ends abnormally with a segmentation fault in NCCL at step 999"


def test_a_program_that_stops_over_its_numbers_says_so() -> None:
    for text, minimum in {
        "FloatingPointError: Loss became infinite or NaN at iteration=537!": False,
        "ValueError: Loss is not finite and patience is exhausted": False,
        "FloatingPointError: Minimum loss scale reached (0.0001). Your loss is probably exploding.": True,
        "Exception: Current loss scale already at minimum - cannot decrease scale anymore. Exiting run.": True,
    }.items():
        (finding,) = analyze(ended("exit", "abnormal", text=text))
        assert finding.measure("numeric") is True
        assert finding.measure("loss_scale_at_minimum") is minimum
    assert analyze(ended("exit", "abnormal", text="KeyError: 'loss'"))[0].measure("numeric") is None


def told(*events: dict[str, object], exit_: Exit = "abnormal") -> RunView:
    rows = [{"run": "run", "source": 0, "line": 2000 + i, "step": 999, **event} for i, event in enumerate(events)]
    run = view({"loss": learning()}, events=pl.DataFrame(rows, schema=TABLES["events"]))
    return RunView(replace(run.run, exit=exit_), run.records)


FULL: dict[str, object] = {"kind": "exit", "rank": 3, "text": "OSError: [Errno 28] No space left on device"}
WAITS: list[dict[str, object]] = [
    {"kind": "nccl_timeout", "rank": r, "text": "Watchdog caught collective operation timeout"} for r in (0, 1)
]


def test_a_failed_write_is_what_the_others_waited_for() -> None:
    (finding,) = analyze(told(FULL, *WAITS))
    assert (
        finding.message
        == "Run ends abnormally with a failed write at step 999; 2 other ranks then time out in a collective"
    )
    assert (finding.where.rank, finding.where.line) == (3, 2000)
    assert finding.measure("storage") is True
    assert finding.measure("first_error") is True
    assert analyze(told({**FULL, "kind": "message"}, exit_="unknown"))[0].message.endswith("a failed write at step 999")


def test_a_failed_write_that_training_went_on_after_ended_nothing() -> None:
    assert "failed write" not in analyze(told({**FULL, "step": 500}, *WAITS))[0].message


def test_the_first_victim_of_several_is_no_place() -> None:
    assert analyze(told(*WAITS))[0].where.rank is None
    assert analyze(told(WAITS[1]))[0].where.rank == 1


def test_an_exit_of_an_earlier_attempt_does_not_tell_of_the_end() -> None:
    (finding,) = analyze(
        told({"kind": "exit", "step": 400, "text": "KeyError: 'a'"}, {"kind": "exit", "text": "KeyError: 'b'"})
    )
    assert finding.where.step == 999
    assert finding.measure("text") == "KeyError: 'b'"


def test_a_time_limit_is_said() -> None:
    text = "slurmstepd: error: *** JOB 18 ON n1 CANCELLED AT 2026-04-07T08:18:54 DUE TO TIME LIMIT ***"
    (finding,) = analyze(told({"kind": "exit", "text": text, "time": 1.0, "zone_known": False}))
    assert finding.message == "Run ends abnormally by the scheduler's time limit at step 999"
    assert finding.where.zone_known is False
