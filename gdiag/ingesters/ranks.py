"""Ranks of rows: columns of one rank (`rank3/loss`, `loss/rank3`, `loss_rank_3`) become rows of it, lost labels are found again."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import polars as pl

from gdiag.ingesters.aliases import LONGEST_NAME
from gdiag.ingesters.values import told, whole

_FIRST: Final = re.compile(r"^(?:.*/)?rank[_\- ]?(\d+)[/_.: ](.+)$", re.IGNORECASE)
_LAST: Final = re.compile(r"^(.+?)[/_.: \[(]+rank[_\- =]?(\d+)[\])]?$", re.IGNORECASE)

_SPOKEN: Final = (
    r"(?i)^[\s'\"\[(]*(?:(?:global|world|local)[ _]?)?(?:rank|worker|proc(?:ess)?|gpu|cuda|device|node|host)?[\s_:=#-]*"
    r"(\d{1,7})(?:\.0+)?(?:\s*(?:/|of)\s*\d+)?[\s'\"\])]*$"
)
"""A rank as programs write one: `3`, `rank3`, `rank_3`, `[Rank 3]`, `cuda:3`, `3/8`."""
_ARE: Final = 0.5
"""Share of a column's words from which they are ranks."""

_LACKING: Final = 0.9
"""Share of the steps with unlabelled rows that have one for each rank they lack, from which these rows lost their label."""
_SEEN: Final = 0.5
"""Share of the steps that each rank writes at least, where ranks write side by side."""


def split_rank(name: str) -> tuple[int | None, str]:
    """Rank and remaining name of a column, (None, name) when it names no rank."""
    if len(name) > LONGEST_NAME:
        return None, name
    if (matched := _FIRST.match(name)) and (rank := whole(matched.group(1), bits=32)) is not None:
        return rank, matched.group(2)
    if (matched := _LAST.match(name)) and (rank := whole(matched.group(2), bits=32)) is not None:
        return rank, matched.group(1)
    return None, name


def are_ranks(column: pl.Series) -> bool:
    """Whether a column called after ranks holds some: numbers, or words that mostly bear one."""
    if column.dtype != pl.String:
        return column.dtype.is_numeric()
    found = of_cells(column).count()
    return bool(found) and found >= _ARE * int(told(column).sum())


def of_cells(column: pl.Series) -> pl.Series:
    """The rank of each cell, Int32; null where there is none."""
    if column.dtype == pl.String:
        column = column.str.extract(_SPOKEN)
    number = column.cast(pl.Float64, strict=False)
    return pl.select(pl.when(number.is_finite()).then(number)).to_series().cast(pl.Int32, strict=False)


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


def labelled(data: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    """Gives rows without a rank the rank that their step lacks, and says so.

    A row that all ranks reduced to stands beside theirs; where instead the step lacks as many ranks as it has such rows,
    the label was lost. One that lacks several takes them in the order of the file where the others are in that order;
    where they are not, nobody can tell, and its rows are left out.

    Args:
        data: `run`, `step`, `rank` in the order of the file.
    """
    ranks = data["rank"].drop_nulls().unique().sort()
    if ranks.len() < 2 or not 0 < data["rank"].null_count() < data.height / 2:
        return data, []
    key = ["run", "step"]
    ranked = pl.col("rank").drop_nulls()
    each = data.filter(pl.col("step").is_not_null()).group_by(key, maintain_order=True).agg(
        none=pl.col("rank").null_count(), told=ranked.len(), kinds=ranked.n_unique(),
        ordered=(ranked.diff().drop_nulls() > 0).all(), held=ranked,
    )  # fmt: skip
    lost = each.filter(pl.col("none") > 0)
    lacks = (lost["kinds"] == lost["told"]) & (lost["none"] + lost["told"] == ranks.len())
    fewest = data["rank"].drop_nulls().value_counts()["count"].min()
    if lacks.sum() < _LACKING * lost.height or not isinstance(fewest, int) or fewest < _SEEN * each.height:
        return data, []
    sure = lost.filter(lacks & ((pl.col("none") == 1) | bool(each["ordered"].all())))
    every = set(ranks.to_list())
    missing = [sorted(every - set(held)) for held in sure["held"].to_list()]
    found = sure.select(key).with_columns(found=pl.Series(missing, dtype=pl.List(pl.Int32))).explode("found")
    place = pl.int_range(pl.len()).over(key).alias("_place")
    filled = found.with_columns(place)
    numbered = data.with_columns(pl.int_range(pl.len()).over([*key, pl.col("rank").is_null()]).alias("_place"))
    joined = numbered.join(filled, on=[*key, "_place"], how="left", nulls_equal=True, maintain_order="left")
    data = joined.with_columns(pl.coalesce("rank", "found").alias("rank")).drop("_place", "found")
    notes = [f"{found.height:,} rows without a rank have the one that their step lacks"]
    unsure = lost.filter(lacks).join(sure.select(key), on=key, how="anti", nulls_equal=True)
    if unsure.height:
        left_out = data.join(unsure.select(key), on=key, how="semi", nulls_equal=True)["rank"].null_count()
        data = data.join(
            unsure.select(key).with_columns(_unsure=True), on=key, how="left", nulls_equal=True, maintain_order="left"
        )
        data = data.filter(pl.col("rank").is_not_null() | pl.col("_unsure").is_null()).drop("_unsure")
        notes.append(f"{left_out:,} rows without a rank are left out: their steps lack several ranks")
    return data, notes
