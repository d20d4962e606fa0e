from __future__ import annotations

from dataclasses import replace

import pytest
from rich.cells import cell_len

from gdiag.model import Cause, Incident, Measure, Report, Run, Segment, Severity, Skip
from gdiag.renderers import words
from gdiag.renderers.summary import codes
from gdiag.renderers.terminal import Screen, render
from tests.renderers.reports import SPIKE

HOSTILE = "\x1b]0;owned\x07[bold red]{x}[/] \u202e\n" + "very/long/" * 30


def test_the_first_screen_names_the_worst_incident_with_cause_evidence_and_action() -> None:
    first = "\n".join(render(SPIKE).split("\n")[:24])
    for wanted in (
        "CRITICAL  Loss is NaN from step 900 on", "step 900–1199", "2023-11-14 22:13:20 UTC", "2.7 GPU-hours", "unknown",
        "low (0.50)", "? per-layer gradient norms", "1. roll back to a checkpoint before step 900", "GD101", "line 901",
    ):  # fmt: skip
        assert wanted in first


def test_further_incidents_are_shorter_but_keep_place_cause_and_action() -> None:
    text = render(SPIKE)
    for wanted in (
        "WARNING  Single loss spike at step 267",
        "blocks.0.fc",
        "samples 4272–4287",
        "bad_batch high (0.81)",
    ):
        assert wanted in text
    assert "inspect the batch" not in text
    assert "inspect the batch" in render(SPIKE, Screen(verbose=True))


def test_every_figure_of_the_evidence_has_its_unit_and_limit_on_request() -> None:
    assert "peak excess 3.1 nat (limit 0.2)" in " ".join(render(SPIKE, Screen(verbose=True)).split())


def test_what_was_not_checked_is_said_beside_what_was() -> None:
    text = render(SPIKE)
    for wanted in (
        "checked",
        "GD101 GD102",
        "not checked",
        "GD401 (no steps.rank)",
        "note: loss averaged over 4 steps",
        "2 rejected",
        "loss=train/loss",
    ):
        assert wanted in text


def test_quiet_is_one_line_per_incident() -> None:
    assert render(SPIKE, Screen(quiet=True)).splitlines() == [
        " CRITICAL  Loss is NaN from step 900 on (step 900–1199 · 2023-11-14 22:13:20 UTC, for 5 min 00 s)",
        " WARNING  Single loss spike at step 267 (step 267–271)",
    ]
    assert render(Report(), Screen(quiet=True)) == ""
    several = replace(SPIKE, runs=(*SPIKE.runs, Run("other")))
    first = render(several, Screen(quiet=True)).splitlines()[0]
    assert first.startswith(f" CRITICAL  {SPIKE.incidents[0].run}: Loss is NaN")


def test_silence_says_what_it_rests_on() -> None:
    healthy = Report(checked=("GD101",), skipped=(Skip("GD401", "no steps.rank"),))
    text = " ".join(render(healthy).split())
    assert "Nothing found by 1 check. 1 other could not run" in text
    assert "unknown, not absent" in text
    assert "not a clean bill of health" in " ".join(render(Report()).split())


def test_silence_on_a_sparse_log_says_what_it_cannot_see() -> None:
    sparse = Report(runs=(Run("run", segments=(Segment(0, 990, 100),)),), checked=("GD101",))
    assert "One row stands for 10 steps" in " ".join(render(sparse).split())


@pytest.mark.parametrize("width", [40, 80, 120])
@pytest.mark.parametrize("verbose", [False, True])
def test_no_line_is_wider_than_the_screen(width: int, verbose: bool) -> None:
    wild = replace(
        SPIKE, incidents=tuple(replace(i, title=HOSTILE, layer=HOSTILE, actions=(HOSTILE,)) for i in SPIKE.incidents)
    )
    for report in (SPIKE, wild):
        for line in render(report, Screen(width, verbose=verbose)).split("\n"):
            assert cell_len(line) <= width


@pytest.mark.parametrize("color", [False, True])
def test_nothing_from_the_input_steers_the_terminal(color: bool) -> None:
    wild = replace(
        SPIKE,
        sources=tuple(replace(s, path=HOSTILE, format=HOSTILE, notes=(HOSTILE,), columns={"loss": HOSTILE}) for s in SPIKE.sources),
        runs=tuple(replace(r, id=HOSTILE, name=HOSTILE) for r in SPIKE.runs) * 2,
        findings=tuple(replace(f, message=HOSTILE, where=replace(f.where, file=HOSTILE, layer=HOSTILE, host=HOSTILE)) for f in SPIKE.findings),
        incidents=tuple(replace(i, title=HOSTILE, run=HOSTILE, layer=HOSTILE, host=HOSTILE, actions=(HOSTILE,), causes=(Cause(HOSTILE, 0.5, "low", (HOSTILE,), (HOSTILE,), (HOSTILE,)),)) for i in SPIKE.incidents),
        tables=tuple(replace(t, title=HOSTILE, rows=((HOSTILE, 1.0),)) for t in SPIKE.tables),
        skipped=(Skip("GD401", HOSTILE),),
        advice=(HOSTILE,),
    )  # fmt: skip
    text = render(wild, Screen(color=color, verbose=True))
    assert "\x1b]" not in text
    assert "\x07" not in text
    assert "\u202e" not in text
    assert "[bold red]" in text.replace("\n", "")
    if not color:
        assert "\x1b" not in text


def test_many_incidents_are_cut_with_their_number() -> None:
    many = Report(incidents=tuple(Incident(f"t{k}", "plateau", Severity.INFO, "run") for k in range(30)))
    assert "and 21 further incidents of no greater severity (-v shows them)" in render(many)
    assert "t29" in render(many, Screen(verbose=True))


def test_consecutive_codes_are_written_as_one() -> None:
    assert codes(["GD101", "GD102", "GD103", "GD201", "GD202", "GD404"]) == "GD101–GD103 GD201 GD202 GD404"
    assert codes([]) == ""


def test_what_was_measured_is_said_where_neither_title_nor_cause_says_it() -> None:
    measured = replace(
        SPIKE.findings[0],
        message="5 steps take 1.6 times as long",
        evidence=(Measure("text", "the log's own \x1b words"),),
    )
    slow = replace(SPIKE.incidents[0], title="Slow steps from step 900")
    text = render(replace(SPIKE, findings=(measured,), incidents=(slow,)), Screen(width=200))
    assert "what  5 steps take 1.6 times as long: “the log's own \\x1b words”" in text
    known = replace(slow, causes=(Cause("unknown", 0.5, "low", ("5 steps take longer",)),))
    quiet = replace(measured, evidence=())
    assert " what " not in render(replace(SPIKE, findings=(quiet,), incidents=(known,)))
    assert " what " not in render(SPIKE)
    told = replace(slow, title="5 steps take 1.6 times as long (rank 3)")
    assert "what  “the log's own \\x1b words”" in render(
        replace(SPIKE, findings=(measured,), incidents=(told,)), Screen(width=200)
    )


def test_many_reasons_and_long_paths_take_a_line_each() -> None:
    report = SPIKE
    skipped = tuple(Skip(f"GD{400 + k}", f"no column number {k % 5}") for k in range(30))
    folder = f"/experiments/{'sweep-with-a-long-name' * 2}/node-7.cluster.internal/attempt_3_after_preemption"
    sources = tuple(replace(s, path=f"{folder}/{s.path}") for s in report.sources)
    text = render(replace(report, skipped=skipped, sources=sources), Screen(width=80))
    assert "not checked 30, -v names each: no column number 0 (6), …" in text
    assert "GD410" not in text
    assert f"in /experiments/{'sweep-with-a-long-name' * 2}/\n" in text
    assert "             node-7.cluster.internal/attempt_3_after_preemption/" in text
    assert all(len(line) <= 80 for line in text.splitlines())


@pytest.mark.parametrize(
    ("path", "shown"),
    [("run.jsonl", "run.jsonl"), ("logs/run.jsonl", "logs/run.jsonl"), (f"/data/{'a' * 40}/run.jsonl", "…/run.jsonl")],
)
def test_a_long_path_is_known_by_its_end(path: str, shown: str) -> None:
    assert words.tail(path) == shown


def test_many_alike_that_are_only_worth_knowing_are_shown_once() -> None:
    hot = [
        replace(
            SPIKE.incidents[0], title=f"GPU {n} runs hot", severity=Severity.INFO, pattern="thermal_slowdown", causes=()
        )
        for n in range(20)
    ]
    many = replace(SPIKE, incidents=(SPIKE.incidents[0], *hot))
    text = render(many, Screen(width=120))
    assert text.count("runs hot") == 1
    assert "and 19 more like it (-v shows each)" in text
    assert "further incident" not in text
    assert render(many, Screen(width=120, verbose=True)).count("runs hot") == 20
    assert render(replace(SPIKE, incidents=(SPIKE.incidents[0], *hot[:3])), Screen(width=120)).count("runs hot") == 3
    grave = tuple(replace(i, severity=Severity.WARNING) for i in hot[:5])
    assert render(replace(SPIKE, incidents=(SPIKE.incidents[0], *grave)), Screen(width=120)).count("runs hot") == 5
