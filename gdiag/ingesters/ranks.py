"""Columns that belong to one rank: `rank3/loss`, `loss/rank3`, `loss_rank_3` become rows of that rank."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import polars as pl

from gdiag.ingesters.aliases import LONGEST_NAME
from gdiag.ingesters.values import whole

_FIRST: Final = re.compile(r"^(?:.*/)?rank[_\- ]?(\d+)[/_.: ](.+)$", re.IGNORECASE)
_LAST: Final = re.compile(r"^(.+?)[/_.: \[(]+rank[_\- =]?(\d+)[\])]?$", re.IGNORECASE)


def split_rank(name: str) -> tuple[int | None, str]:
    """Rank and remaining name of a column, (None, name) when it names no rank."""
    if len(name) > LONGEST_NAME:
        return None, name
    if (matched := _FIRST.match(name)) and (rank := whole(matched.group(1), bits=32)) is not None:
        return rank, matched.group(2)
    if (matched := _LAST.match(name)) and (rank := whole(matched.group(2), bits=32)) is not None:
        return rank, matched.group(1)
    return None, name


def with_rank_rows(data: pl.DataFrame, ranked: Mapping[int, Mapping[str, pl.Series]]) -> pl.DataFrame:
    """Adds a row per rank below each row that logged values of single ranks."""
    order = pl.int_range(pl.len(), dtype=pl.UInt32).alias("_row")
    parts = [data.with_columns(order)]
    for rank, metrics in ranked.items():
        rows = data.select("line", "run", "step").with_columns(
            *metrics.values(), order, rank=pl.lit(rank, pl.Int32),
        )  # fmt: skip
        parts.append(rows.filter(pl.any_horizontal(pl.col(list(metrics)).is_not_null())))
    return pl.concat(parts, how="diagonal").sort("_row", "rank", nulls_last=False, maintain_order=True).drop("_row")
