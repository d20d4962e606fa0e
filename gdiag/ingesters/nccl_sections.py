"""Which test run of a file, which repeat and which collective each line of nccl-tests output belongs to."""

from __future__ import annotations

import numpy as np
import polars as pl


def sections(starts: pl.DataFrame, rows: pl.DataFrame, facts: pl.DataFrame) -> pl.DataFrame:
    """First line of every test run in the file: a start or header line that follows rows or a footer."""
    begins = starts["line"].unique().sort().to_numpy()
    footers = facts.filter(pl.col("key") == "average_busbw")["line"].to_numpy()
    before = np.searchsorted(rows["line"].to_numpy(), begins) + np.searchsorted(footers, begins)
    first = begins[np.diff(before, prepend=-1) > 0] if len(begins) else np.array([1])
    return pl.DataFrame({"section": np.arange(len(first), dtype=np.int32), "line": first})


def placed(table: pl.DataFrame, starts: pl.DataFrame) -> pl.DataFrame:
    """`table` with the section each line belongs to; what stands before the first start belongs to it too."""
    ordered = table if table["line"].is_sorted() else table.sort("line", maintain_order=True)
    after = np.append(np.searchsorted(ordered["line"].to_numpy(), starts["line"].to_numpy()[1:]), ordered.height)
    section = np.repeat(starts["section"].to_numpy(), np.diff(after, prepend=0))
    return ordered.with_columns(section=pl.Series(section, dtype=pl.Int32))


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
    falls = np.flatnonzero((size[1:] < size[:-1]) & ~begins[1:]) + 1
    cycle = np.zeros(rows.height, dtype=np.int32)
    if len(falls):
        at = np.flatnonzero(begins)
        smallest = np.minimum.reduceat(size, at)
        cycle[falls[size[falls] == smallest[np.searchsorted(at, falls, side="right") - 1]]] = 1
        cycle = np.cumsum(cycle, dtype=np.int32)
        cycle -= np.repeat(cycle[at], np.diff(at, append=rows.height))
    return rows.with_columns(cycle=pl.Series(cycle))
