"""Rows that belong together: what is written twice side by side is told."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from gdiag.ingesters import load
from gdiag.ingesters.rows import repeated

SAID = "only repeat"


def frame(losses: list[float | None], steps: list[int], *, clock: bool = False) -> pl.DataFrame:
    told = pl.DataFrame({"line": range(len(steps)), "step": steps, "loss": pl.Series(losses, dtype=pl.Float64)})
    told = told.with_columns(run=pl.lit(None, pl.String), rank=pl.lit(None, pl.Int32))
    return told.with_columns(time=pl.int_range(pl.len()) * 0.5) if clock else told


@pytest.mark.parametrize("clock", [False, True])
def test_rows_written_twice_are_counted(clock: bool) -> None:
    assert repeated(frame([3.0, 3.0, 2.9, 2.8, 2.8], [1, 1, 2, 3, 3], clock=clock)) == [
        "2 rows only repeat the one above, of the same step"
    ]
    assert repeated(frame([float("nan")] * 2, [1, 1], clock=clock)) == [
        "1 row only repeats the one above, of the same step"
    ]


@pytest.mark.parametrize(
    ("losses", "steps"),
    [([3.0, 2.9], [1, 1]), ([3.0, 3.0], [1, 2]), ([None, None], [1, 1]), ([3.0, 2.9, 3.0], [1, 1, 1])],
)
def test_rows_that_say_something_are_none(losses: list[float | None], steps: list[int]) -> None:
    assert not repeated(frame(losses, steps))


def test_a_table_with_rows_written_twice_says_so(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    lines = [json.dumps({"step": s, "loss": 3 - s / 50}) + "\n" for s in range(40)]
    path.write_text("".join([*lines[:20], lines[19], lines[19], *lines[20:]]))
    assert any(SAID in note and note.startswith("2 ") for note in load([path]).sources[0].notes)
    path.write_text("".join(lines))
    assert not any(SAID in note for note in load([path]).sources[0].notes)
