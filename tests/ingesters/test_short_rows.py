"""Rows of a table that have fewer or more cells than there are names."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from gdiag.ingesters import load, short_rows
from gdiag.ingesters.short_rows import filled, gap, spans
from gdiag.schema import Records


def read(path: Path, head: str, rows: list[str]) -> Records:
    path.write_text("\n".join([head, *rows]) + "\n")
    return load([path])


def test_last_cells_left_out(tmp_path: Path) -> None:
    rows = [f"{i},{3 - i / 100},1e-4" + (",2.5,0.5" if i % 10 == 0 else "") for i in range(60)]
    steps = read(tmp_path / "run.csv", "step,loss,lr,eval_loss,eval_acc", rows).steps
    assert steps["lr"].to_list() == [1e-4] * 60
    assert steps["eval_loss"].count() == 6


def test_cells_left_out_in_between_are_told_by_their_values(tmp_path: Path) -> None:
    rows = [f"{i},{3 - i / 100}," + ("2.5,0.5," if i % 10 == 0 else "") + "1e-4" for i in range(60)]
    records = read(tmp_path / "run.csv", "step,loss,eval_loss,eval_acc,lr", rows)
    assert records.steps["lr"].to_list() == [1e-4] * 60
    assert records.steps["eval_loss"].drop_nulls().to_list() == [2.5] * 6
    assert (
        "54 rows have 3 cells under 5 names: the values tell that those behind the 2nd are missing"
        in records.sources[0].notes
    )


def test_what_cannot_be_told_is_not_used(tmp_path: Path) -> None:
    rows = [f"{i},{3 - i / 100}," + ("2.5,0.5,0.4" if i % 10 == 0 else "1e-7") for i in range(60)]
    records = read(tmp_path / "run.csv", "step,loss,eval_loss,eval_acc,grad_norm", rows)
    assert records.steps["eval_loss"].drop_nulls().to_list() == [2.5] * 6
    assert any("which are missing cannot be told: the first 2 are used" in note for note in records.sources[0].notes)


def test_no_row_is_whole(tmp_path: Path) -> None:
    records = read(tmp_path / "run.csv", "step,loss,lr,eval_loss", [f"{i},{3 - i / 100},1e-4" for i in range(60)])
    assert records.steps["lr"].to_list() == [1e-4] * 60
    assert "no row has more than 3 cells under 4 names" in records.sources[0].notes[0]


@pytest.mark.parametrize("quote", ["", '"'])
def test_row_numbers_without_a_name(tmp_path: Path, quote: str) -> None:
    rows = [f"{quote}{i + 1}{quote},{10 * i},{3 - i / 100}" for i in range(60)]
    assert read(tmp_path / "run.csv", "step,loss", rows).steps["step"].to_list() == [10 * i for i in range(60)]


def test_a_separator_at_the_end_of_every_row(tmp_path: Path) -> None:
    records = read(tmp_path / "run.csv", "step,loss,lr", [f"{i},{3 - i / 100},1e-4," for i in range(60)])
    assert records.steps["lr"].to_list() == [1e-4] * 60
    assert not records.sources[0].notes


def test_a_gap_is_where_values_fit() -> None:
    held = spans([["1", "2.5", "300", "1e-5"]] * 3, 4)
    assert gap([["1", "2.4", "310"]], held) == (3, 3)
    assert gap([["1", "2.4", "1e-5"]], held) == (2, 3)
    assert gap([["1", "2.4", "1e-9"]], held) == (3, 2)
    assert gap([["1", "2.4", "1e-5"]], [None] * 4) == (3, 3)


def test_two_whole_rows_tell_nothing() -> None:
    whole = [["1", "2.5", "300", "1e-5"]] * 2
    assert filled([*whole, ["1", "2.4", "1e-5"]], 4) == ([*whole, ["1", "2.4", "1e-5", ""]], [])


def test_whole_rows_are_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    span = short_rows._span

    def noted(cells: Sequence[str]) -> short_rows.Span | None:
        asked.append(len(cells))
        return span(cells)

    monkeypatch.setattr(short_rows, "_span", noted)
    rows = [[str(cell) for cell in range(width)] for width in range(2, 40)]
    filled([*rows, *[rows[-1]] * 9], 39)
    assert asked.count(10) == 39
