from __future__ import annotations

import pytest
from rich.console import Console

from gdiag.model import Column, Finding, Location, Measure, Report, Severity, Source, Table
from gdiag.renderers.coverage import grid_of
from gdiag.renderers.summary import source_line


def test_a_narrow_screen_breaks_neither_numbers_nor_words_of_the_head() -> None:
    words = (
        "collective",
        "test runs",
        "ranks",
        "hosts",
        "plateau",
        "lowest",
        "at line",
        "limit",
        "of limit",
        "verdict",
    )
    table = Table(
        "",
        tuple(Column(word) for word in words),
        (("all_reduce", 204080, 1024, 128, 198.9, 198.9, 16, 475, 42, "bad"),),
    )
    console = Console(width=80, no_color=True)
    with console.capture() as shown:
        console.print(grid_of(table, 80))
    assert {"204,080", "1,024", "198.9", "verdict", "collective"} <= set(shown.get().split())
    assert max(len(line.rstrip()) for line in shown.get().splitlines()) <= 80


@pytest.mark.parametrize(("width", "blanks"), [(80, 1), (100, 2), (120, 2), (200, 2)])
def test_many_columns_stand_two_blanks_apart_where_there_is_room(width: int, blanks: int) -> None:
    table = Table("", tuple(Column(f"col {i}") for i in range(12)), (tuple(float(i) for i in range(12)),))
    console = Console(width=width, no_color=True)
    with console.capture() as shown:
        console.print(grid_of(table, width))
    assert shown.get().splitlines()[0].rstrip() == (" " * blanks).join(f"col {i}" for i in range(12))


def test_a_wide_cell_of_few_columns_is_broken_with_its_blanks_kept() -> None:
    table = Table("", (Column("question"), Column("answer")), (("time", "not placed " * 20),))
    console = Console(width=60, no_color=True)
    with console.capture() as shown:
        console.print(grid_of(table, 60))
    assert shown.get().splitlines()[0].startswith("question  answer")


def test_rows_of_which_a_cell_is_left_out_are_not_called_rejected() -> None:
    source = Source("run.jsonl", "jsonl", 600, 600)
    told = Finding(
        "GD001", "rejected-lines", Severity.INFO, "cells", Location(file="run.jsonl"), (Measure("cells", True),)
    )
    assert source_line(source, Report(sources=(source,), findings=(told,))).endswith("600 with a cell left out")
    assert source_line(source, Report(sources=(source,))).endswith("600 rejected")
