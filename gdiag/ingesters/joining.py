"""Steps of one run from two files, made one table."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

_OWN = ("line", "run", "rank", "step")
"""What a row of a file is called by, and none of its metrics."""


def completed(own: pl.DataFrame, other: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    """The rows of a run with what a twin's have more: columns, cells that the run's rows lack, rows at other steps where the
    run's steps only rise.

    Returns:
        the rows, and how many of the twin's could not be put among them.
    """
    keys = ["run", "step", "rank"]
    alone = other.join(own.select(keys).unique(), on=keys, how="anti", nulls_equal=True, maintain_order="left")
    extra = _one_a_key(other, keys)
    own = _filled(own.join(extra, on=keys, how="left", nulls_equal=True, maintain_order="left", suffix=_THEIRS), keys)
    if not alone.height:
        return own, 0
    rising = own["step"].drop_nulls().is_sorted() and alone["step"].drop_nulls().is_sorted()
    if not rising or own["rank"].count() or own["run"].count():
        return own, alone.height
    # A line of the other file is none of this one's.
    both = pl.concat([own, alone.with_columns(line=pl.lit(None, pl.Int64))], how="diagonal_relaxed")
    return both.select(own.columns).sort("step", maintain_order=True), 0


def joined(a: pl.DataFrame, b: pl.DataFrame) -> pl.DataFrame:
    """Rows of both by step, in order of step; what the first table lacks is the second one's."""
    merged = a.join(_one_a_key(b, ["step"]), on="step", how="full", coalesce=True, suffix=_THEIRS)
    return _filled(merged, ["step"]).sort("step", maintain_order=True)


_THEIRS = "\0 of the other"


def _one_a_key(rows: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """A row for each key, with the last value of every column that its rows hold: none is lost because a later row lacks it."""
    metrics = [name for name in rows.columns if name not in _OWN and rows[name].count()]
    told = rows.select(*keys, *metrics)
    if not told.select(pl.struct(keys).is_duplicated().any()).item():
        return told
    return told.group_by(keys, maintain_order=True).agg(pl.col(metrics).drop_nulls().last())


def _filled(rows: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """The rows with what they lack taken from the columns of the other file, which then go.

    Of several rows of one key, such as a training row and an evaluation's, the first takes it, and only what none of them has.
    """
    theirs = [name for name in rows.columns if name.endswith(_THEIRS)]
    once = bool(theirs) and not rows.select(pl.struct(keys).is_duplicated().any()).item()
    first = pl.struct(keys).is_first_distinct()
    fresh = []
    for name, other in zip([name.removesuffix(_THEIRS) for name in theirs], theirs, strict=True):
        lacks = pl.lit(True) if once else first & pl.col(name).is_null().all().over(keys)
        fresh.append(pl.coalesce(name, pl.when(lacks).then(other)).alias(name))
    return rows.with_columns(fresh).drop(theirs)
