"""Steps of one run from two files."""

from __future__ import annotations

import polars as pl

from gdiag.ingesters.joining import completed, joined

KEYS = {"line": pl.Int64, "run": pl.String, "rank": pl.Int32, "step": pl.Int64}


def rows(steps: list[int], **metrics: list[float | None]) -> pl.DataFrame:
    frame = pl.DataFrame({"line": range(1, len(steps) + 1), "run": None, "rank": None, "step": steps}, schema=KEYS)
    return frame.with_columns(pl.Series(name, cells, dtype=pl.Float64) for name, cells in metrics.items())


def test_a_column_that_begins_late_in_one_file_is_taken_from_the_other() -> None:
    own = rows([1, 2, 3], loss=[3.0, 2.0, 1.0], lr=[None, None, 0.3])
    other = rows([1, 2, 3], loss=[3.0, 2.0, 1.0], lr=[0.1, 0.2, 0.4])
    assert completed(own, other)[0]["lr"].to_list() == [0.1, 0.2, 0.3]
    assert joined(own, other)["lr"].to_list() == [0.1, 0.2, 0.3]


def test_a_later_row_that_lacks_a_column_does_not_cost_it() -> None:
    own = rows([1, 2], loss=[3.0, 2.0])
    other = rows([1, 1, 2, 2], loss=[3.0, None, 2.0, None], grad_norm=[0.5, None, None, 0.6])
    assert completed(own, other)[0]["grad_norm"].to_list() == [0.5, 0.6]
    assert joined(own, other)["grad_norm"].to_list() == [0.5, 0.6]


def test_an_evaluation_row_takes_no_training_loss() -> None:
    own = rows([1, 2, 2], loss=[3.0, 2.0, None], eval_loss=[None, None, 2.5])
    other = rows([1, 2], loss=[3.0, 2.0], lr=[0.1, 0.2])
    assert completed(own, other)[0]["loss"].to_list() == [3.0, 2.0, None]


def test_rows_of_one_file_only_keep_their_shared_columns() -> None:
    a, b = rows([1, 3], loss=[3.0, 1.0], epoch=[0.1, 0.3]), rows([2, 3], eval_loss=[2.0, 1.5], epoch=[0.2, 0.3])
    assert joined(a, b)["epoch"].to_list() == [0.1, 0.2, 0.3]
