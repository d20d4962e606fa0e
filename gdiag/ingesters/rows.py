"""Rows that belong together: filled steps, sparse rows of one step made one, empty rows dropped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import polars as pl

_KEYS: Final = ("line", "run", "rank", "step")
_SHARED: Final = (
    "epoch",
    "time",
    "elapsed",
    "tokens",
    "samples",
    "tokens_per_s",
    "samples_per_s",
    "step_time",
    "batch_size",
    "seq_len",
)
"""Metrics that any row may carry and that do not make it a training row."""
_FRACTIONS: Final = 0.25
"""Share of fractions among steps from which they are no damage: of steps of a half every other one is whole."""
_OFF: Final = 0.05
"""How far a count of fractions may be off a whole number, for what is printed is rounded."""
_DIGITS: Final = 9
"""Digits of a fraction that count: what differs behind them is the same number computed in another way."""
_COUNTED: Final = 1e9
"""Counts of fractions above this are no counts."""


def is_step(step: pl.Series) -> pl.Series:
    """Which numbers can be a step: finite, and the difference of any two fits 64 bits."""
    return (step.is_finite() & (step.abs() < 2**62)).fill_null(False)


def fill_steps(data: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    """`step` as Int64; rows without one (evaluation, system) belong to the step before them, leading ones to the first."""
    step = pl.col("step")
    data = data.with_columns(step=pl.when(is_step(data["step"])).then(step.round()).cast(pl.Int64, strict=False))
    missing = data["step"].null_count()
    if not missing:
        return data, []
    return (
        data.with_columns(pl.col("step").forward_fill().backward_fill()),
        [
            f"{missing} {'row' if missing == 1 else 'rows'} without a step {'takes' if missing == 1 else 'take'} the step of the row before"
        ],
    )


def fractional(step: pl.Series) -> bool:
    """Whether steps are counted in fractions, such as of an epoch: many of the numbers are no whole ones."""
    if not step.dtype.is_float():
        return False
    told = step.filter(is_step(step))
    return bool(told.len()) and int((told != told.floor()).sum()) > _FRACTIONS * told.len()


def whole_steps(data: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    """`step` in whole numbers, in the order and, where they are multiples of one fraction, in the distances that it had.

    Steps in fractions stay as `epoch` where nothing else gives it.
    """
    if not fractional(data["step"]):
        return data, []
    step = pl.when(is_step(data["step"])).then(pl.col("step").round_sig_figs(_DIGITS))
    told = data.select(step).to_series().drop_nulls().unique().sort()
    number, how = counted_in(told)
    first, last = (f"{told[i]:.6g}" for i in (0, -1))
    kept = [] if "epoch" in data.columns and data["epoch"].count() else [pl.col("step").alias("epoch")]
    placed = step.replace_strict(told, number, default=None, return_dtype=pl.Float64)
    return data.with_columns(placed.alias("step"), *kept), [f"steps are fractions from {first} to {last}: {how}"]


def counted_in(told: pl.Series) -> tuple[pl.Series, str]:
    """Whole numbers for distinct fractions in rising order, and how they were found, in words."""
    unit = float(str(told.diff().min())) if told.len() > 1 else 1.0
    counts = told / unit if unit > 0 else told
    off = (counts - counts.round()).abs()
    if unit > 0 and float(str(counts.abs().max())) < _COUNTED and bool((off < _OFF).all()):
        return counts.round(), f"counted in units of {unit:.6g}"
    return told.rank("dense").cast(pl.Float64) - 1, "numbered from 0 in their order"


def drop_empty(data: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """Rows in which something but the keys is logged."""
    rest = [name for name in data.columns if name not in keys]
    if not rest:
        return data
    if any(data[name].null_count() == 0 for name in rest[:64]):
        return data
    return data.filter(pl.any_horizontal(pl.col(rest).is_not_null()))


def coalesce(data: pl.DataFrame) -> pl.DataFrame:
    """Consecutive rows of one step that fill different columns are one row; evaluation rows stay by themselves.

    Loggers such as Lightning write each group of metrics on a row of its own. Rows are joined only when no metric has two
    different values in them; otherwise they are two loggings of one step and stay two.
    """
    metrics = [name for name in data.columns if name not in _KEYS]
    if data.height < 2 or not metrics:
        return data
    same = pl.all_horizontal(pl.col("run", "rank", "step").eq_missing(pl.col("run", "rank", "step").shift()))
    if not data.select((same & (pl.int_range(pl.len()) > 0)).any()).item():
        return data
    own = [name for name in metrics if name not in _SHARED and name != "eval_loss"]
    train = pl.any_horizontal(pl.col(own).is_not_null()) if own else pl.lit(False)
    alone = ~train & pl.col("eval_loss").is_not_null() if "eval_loss" in metrics else pl.lit(False)
    marked = data.with_columns(_alone=alone, _at=pl.int_range(pl.len()))
    start = ~same | (pl.col("_alone") != pl.col("_alone").shift())
    marked = marked.with_columns(_start=start.fill_null(True))
    single = marked.select(pl.col("_start") & pl.col("_start").shift(-1).fill_null(True)).to_series()
    if single.all():
        return data
    several = marked.filter(~single).with_columns(_group=pl.col("_start").cum_sum().cast(pl.Int64))
    clash = several.group_by("_group").agg(
        pl.col(metrics).drop_nulls().n_unique() > 1
    ).select("_group", _clash=pl.any_horizontal(pl.col(metrics)))  # fmt: skip
    several = several.join(clash, on="_group", how="left", maintain_order="left")
    apart = pl.int_range(pl.len(), dtype=pl.Int64) + data.height
    joined = (
        several.with_columns(_group=pl.when("_clash").then(apart).otherwise("_group"))
        .group_by("_group", maintain_order=True)
        .agg(pl.col("_at", "line", "run", "rank", "step").first(), pl.col(metrics).drop_nulls().first())
        .drop("_group")
    )
    return pl.concat([marked.filter(single).select(joined.columns), joined]).sort("_at").drop("_at")
