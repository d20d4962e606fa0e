"""Of several readings of one thing, the latest."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

Keys = Sequence[str | pl.Expr]
"""What names a thing that is read: columns, or expressions of them."""


def latest(rows: pl.DataFrame, things: Keys, order: Sequence[str] = ("source",)) -> pl.DataFrame:
    """Rows of the latest reading of each of `things`, in order of source and line.

    order: columns that number the readings, the first counting most: files in the order given, then readings in a file.
    """
    for number in order:
        rows = rows.filter(pl.col(number).eq_missing(pl.col(number).max().over(things)))
    return rows.sort("source", "line", maintain_order=True)
