"""Of several readings of one thing, the latest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import polars as pl

Keys = Sequence[str | pl.Expr]
"""What names a thing that is read: columns, or expressions of them."""
_NUMBERED: Final = r"^(?:page|switch) \d+$"
"""What ingesters call a transceiver or a switch whose name is not printed: by its place in the file."""


def latest(rows: pl.DataFrame, things: Keys, order: Sequence[str] = ("source",)) -> pl.DataFrame:
    """Rows of the latest reading of each of `things`, in order of source and line.

    order: columns that number the readings, the first counting most: files in the order given, then readings in a file.
    """
    for number in order:
        rows = rows.filter(pl.col(number).eq_missing(pl.col(number).max().over(things)))
    return rows.sort("source", "line", maintain_order=True)


def own(name: str) -> pl.Expr:
    """The file of what bears no name of its own in the column `name`, null with one: two files have each their first switch."""
    return pl.when(pl.col(name).is_null() | pl.col(name).str.contains(_NUMBERED)).then(pl.col("source"))
