"""GD001: rejects are counted per file."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from gdiag.analyzers.rejected_lines import analyze
from gdiag.measures.run import RunView
from gdiag.model import Severity, Source
from gdiag.schema import TABLES
from tests.analyzers.made_runs import learning, view


def damaged(count: int) -> RunView:
    run = view({"loss": learning(100)})
    rejects = pl.DataFrame(
        {
            "source": [0] * count,
            "line": [*range(101, 101 + count)],
            "reason": ["no JSON"] * count,
            "text": [""] * count,
        },
        schema_overrides=TABLES["rejects"],
    )
    records = replace(run.records, rejects=rejects, sources=(Source("run.jsonl", "jsonl", 100, count),))
    return RunView(run.run, records)


def test_one_bad_line_is_information() -> None:
    (finding,) = analyze(damaged(1))
    assert finding.severity is Severity.INFO
    assert (finding.where.file, finding.where.line) == ("run.jsonl", 101)


def test_many_are_a_warning() -> None:
    assert analyze(damaged(20))[0].severity is Severity.WARNING
    assert analyze(damaged(20), share=0.5)[0].severity is Severity.INFO


def test_quiet_on_a_whole_file() -> None:
    assert analyze(damaged(0)) == []


def test_cells_of_rows_that_were_read_are_information_unless_they_are_the_loss() -> None:
    def cells(column: str) -> Severity:
        run = view({"loss": learning(100)})
        lines = run.records.steps["line"].to_list()[:50]
        rejects = pl.DataFrame(
            {"source": [0] * 50, "line": lines, "reason": [f"no number in column {column}"] * 50, "text": [""] * 50},
            schema_overrides=TABLES["rejects"],
        )
        source = Source("run.jsonl", "jsonl", 100, 50, {"loss": "loss"})
        (finding,) = analyze(RunView(run.run, replace(run.records, rejects=rejects, sources=(source,))))
        assert finding.message.startswith("50 of 100 rows hold a cell that is no number")
        return finding.severity

    assert cells("elapsed_time") is Severity.INFO
    assert cells("loss") is Severity.WARNING
