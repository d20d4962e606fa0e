from __future__ import annotations

from types import SimpleNamespace
from typing import cast

from gdiag.analyzers.analyzer import Analyzer
from gdiag.tables.doctor import examine
from tests.tables.steps import records


def analyzer(code: str, *needs: str) -> Analyzer:
    return cast(Analyzer, SimpleNamespace(CODE=code, NAME=code.lower(), NEEDS=needs, analyze=None))


def test_checks_are_told_apart_by_what_they_need() -> None:
    house = [
        analyzer("GD101", "steps.loss"), analyzer("GD201", "steps.grad_norm"), analyzer("GD206", "steps.grad_norm"),
        analyzer("GD104", "steps.loss|steps.eval_loss"), analyzer("GD505", "steps.rank", "steps.step_time"),
    ]  # fmt: skip
    report = examine(records(loss=[3.0, 2.0]), house)
    assert report.checked == ("GD101", "GD104")
    assert [skip.code for skip in report.skipped] == ["GD201", "GD206", "GD505"]
    unlocking = next(t for t in report.tables if t.title.startswith("What would unlock"))
    assert unlocking.rows == (
        ("grad_norm", "gradient norm before clipping", "GD201 gd201, GD206 gd206"),
        ("rank and step_time", "rank of each row; seconds per step", "GD505 gd505"),
    )
    able = next(t for t in report.tables if t.title == "Checks that can run (2)")
    assert able.rows == (("loss", "GD101 gd101, GD104 gd104"),)


def test_the_columns_of_each_file_are_counted() -> None:
    report = examine(records(loss=[3.0, 2.0], lr=[1.0, 1.0]), [])
    assert report.tables[0].rows == (("loss", "loss", 2), ("lr", "lr", 2))
