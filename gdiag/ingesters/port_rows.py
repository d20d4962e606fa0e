"""Readings of counters of ports as a table, whatever program printed them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import polars as pl

from gdiag.schema import TABLES

_KEY: Final = ("host", "device", "port", "guid", "counter")


def table(rows: Sequence[Sequence[object]], columns: Sequence[str]) -> pl.DataFrame:
    """Rows of `ports`; `snapshot` numbers the readings of one counter of one port in their order, from 0.

    columns: names of the cells; without `saturated` no counter can stand at its largest value.
    """
    types = TABLES["ports"]
    frame = pl.DataFrame(rows, schema={name: types[name] for name in columns}, orient="row")
    if "saturated" not in columns:
        frame = frame.with_columns(saturated=pl.lit(value=False))
    key = [name for name in _KEY if name in columns]
    return frame.with_columns(snapshot=pl.col("line").cum_count().over(key).cast(pl.Int32) - 1)
