"""Which test run of a file, which repeat and which collective each line of nccl-tests output belongs to."""

from __future__ import annotations

import numpy as np
import polars as pl


def sections(starts: pl.DataFrame, rows: pl.DataFrame, facts: pl.DataFrame) -> pl.DataFrame:
    """First line of every test run in the file: a start or header line that follows rows or a footer."""
    begins = starts.unique().select("line", start=pl.lit(value=True))
    inside = rows.select("line", start=pl.lit(value=False))
    inside = inside.filter(pl.col("line") != pl.col("line").shift(fill_value=-1))
    footers = facts.filter(pl.col("key") == "average_busbw").select("line", start=pl.lit(value=False))
    marks = pl.concat([begins, inside, footers]).sort("line")
    first = marks.filter(pl.col("start") & ~pl.col("start").shift(fill_value=False)).select("line")
    if not first.height:
        first = pl.DataFrame({"line": [1]}, schema={"line": pl.Int64})
    return first.with_row_index("section").with_columns(pl.col("section").cast(pl.Int32))


def placed(table: pl.DataFrame, starts: pl.DataFrame) -> pl.DataFrame:
    """`table` with the section each line belongs to; what stands before the first start belongs to it too."""
    ordered = table if table["line"].is_sorted() else table.sort("line", maintain_order=True)
    section = np.searchsorted(starts["line"].to_numpy(), ordered["line"].to_numpy(), side="right") - 1
    return ordered.with_columns(section=pl.Series(np.maximum(section, 0).astype(np.int32)))


def named(rows: pl.DataFrame, facts: pl.DataFrame, starts: pl.DataFrame) -> pl.DataFrame:
    """`rows` (with section) with the collective that the nearest line names, inside its section or just before it."""
    told = facts.filter((pl.col("scope") == "config") & (pl.col("key") == "collective")).select(
        "line", collective="value"
    )
    inside = placed(told, starts).group_by("section").agg(own=pl.col("collective").first())
    each = (
        starts.join_asof(told, on="line", strategy="backward")
        .join(inside, on="section", how="left", maintain_order="left")
        .select(pl.coalesce("own", "collective").cast(pl.Categorical))
        .to_series()
    )
    return rows.with_columns(collective=each.gather(rows["section"]))


def cycled(rows: pl.DataFrame) -> pl.DataFrame:
    """`rows` (with section) with the repeats of -N: sizes that fall back to the smallest without a new header."""
    if not rows.height:
        return rows.with_columns(cycle=pl.lit(0, pl.Int32))
    section = rows["section"].to_numpy()
    # A size that is not known is no smallest one.
    size = rows["size"].fill_null(np.iinfo(np.int64).max).to_numpy()
    begins = np.append(True, section[1:] != section[:-1])
    at = np.flatnonzero(begins)
    part = np.cumsum(begins) - 1
    again = np.append(False, size[1:] < size[:-1]) & ~begins & (size == np.minimum.reduceat(size, at)[part])
    cycle = np.cumsum(again)
    return rows.with_columns(cycle=pl.Series((cycle - cycle[at][part]).astype(np.int32)))
