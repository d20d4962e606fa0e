"""Steps of one run from two files, made one table."""

from __future__ import annotations

import polars as pl


def completed(own: pl.DataFrame, other: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    """The rows of a run with what a twin's have more: columns, and rows at other steps where the run's steps only rise.

    Returns:
        the rows, and how many of the twin's could not be put among them.
    """
    keys = ["run", "step", "rank"]
    alone = other.join(own.select(keys).unique(), on=keys, how="anti", nulls_equal=True, maintain_order="left")
    fresh = [c for c in other.columns if c not in own.columns]
    if fresh:
        extra = other.select(*keys, *fresh).unique(keys, keep="last")
        own = own.join(extra, on=keys, how="left", nulls_equal=True, maintain_order="left")
    if not alone.height:
        return own, 0
    rising = own["step"].drop_nulls().is_sorted() and alone["step"].drop_nulls().is_sorted()
    if not rising or own["rank"].count() or own["run"].count():
        return own, alone.height
    # A line of the other file is none of this one's.
    both = pl.concat([own, alone.with_columns(line=pl.lit(None, pl.Int64))], how="diagonal_relaxed")
    return both.select(own.columns).sort("step", maintain_order=True), 0


def joined(a: pl.DataFrame, b: pl.DataFrame) -> pl.DataFrame:
    """Rows of both by step, in order of step."""
    fresh = [c for c in b.columns if c not in a.columns or c == "time"]
    extra = b.select("step", *fresh).unique("step", keep="last", maintain_order=True)
    merged = a.join(extra, on="step", how="full", coalesce=True, suffix="_b")
    if "time_b" in merged.columns:
        merged = merged.with_columns(pl.coalesce("time", "time_b").alias("time")).drop("time_b")
    return merged.sort("step", maintain_order=True)
