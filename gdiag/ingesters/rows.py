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
_CLOCKS: Final = ("time", "elapsed")
"""Metrics that differ where a row is written twice."""
_FRACTIONS: Final = 0.25
"""Share of fractions among steps from which they are no damage: of steps of a half every other one is whole."""
_OFF: Final = 0.05
"""How far a count of fractions may be off a whole number, for what is printed is rounded."""
_DIGITS: Final = 9
"""Digits of a fraction that count: what differs behind them is the same number computed in another way."""
_COUNTED: Final = 1e9
"""Counts of fractions above this are no counts."""
_PARTS, _MANY = 6, 5
"""Parts of the smallest distance that the others may be counted in, and fractions that show it: 0.2, 0.5, 0.7 are tenths."""
_SHOWN: Final = 3
"""Units of runs that are named."""


def is_step(step: pl.Series) -> pl.Series:
    """Which numbers can be a step: finite, and the difference of any two fits 64 bits."""
    return (step.is_finite() & (step.abs() < 2**62)).fill_null(False)


def steps_of(data: pl.DataFrame, columns: dict[str, str]) -> tuple[pl.DataFrame, list[str]]:
    """`step` as Int64: the step column, else whole epochs, else the row's number."""
    notes: list[str] = []
    if "step" in data.columns:
        if is_step(data["step"]).any():
            data, said = whole_steps(data)
            if said and data["epoch"].count():
                columns.setdefault("epoch", columns["step"])
            filled, more = fill_steps(data)
            return filled, [*said, *more]
        if data["step"].count():
            notes = ["no step is a finite number below 2^62"]
    data = data.drop("step", strict=False)
    columns.pop("step", None)
    if "epoch" in data.columns:
        epoch = data["epoch"]
        whole = epoch.drop_nulls()
        if whole.len() and bool((whole == whole.round()).all()) and 3 * whole.rle_id().n_unique() > whole.len():
            columns["step"] = columns["epoch"]
            filled, said = fill_steps(data.with_columns(step=pl.col("epoch")))
            return filled, [*notes, *said, "no step column: epochs are used as steps"]
    number = pl.int_range(pl.len(), dtype=pl.Int64)
    numbered = data.with_columns(step=number.over("run") if several_runs(data) else number)
    return numbered, [*notes, "no step column: rows are numbered from 0"]


def fill_steps(data: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    """`step` as Int64; rows without one (evaluation, system) belong to the step before them, leading ones to the first."""
    step = pl.col("step")
    data = data.with_columns(step=pl.when(is_step(data["step"])).then(step.round()).cast(pl.Int64, strict=False))
    missing = data["step"].null_count()
    if not missing:
        return data, []
    filled = pl.col("step").forward_fill().backward_fill()
    return (
        data.with_columns(filled.over("run") if several_runs(data) else filled),
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

    Each run has its own unit. Steps in fractions stay as `epoch` where nothing else gives it.
    """
    if not fractional(data["step"]):
        return data, []
    step = pl.when(is_step(data["step"])).then(pl.col("step"))
    kept = [] if "epoch" in data.columns and data["epoch"].count() else [pl.col("step").alias("epoch")]
    data = data.with_columns(step.alias("step"), *kept)
    placed, how = of_each_run(data, "step")
    first, last = (f"{float(str(end)):.6g}" for end in (data["step"].min(), data["step"].max()))
    return data.with_columns(placed.alias("step")), [f"steps are fractions from {first} to {last}: {how}"]


def several_runs(data: pl.DataFrame) -> bool:
    """Whether the rows are of several runs, which tell nothing of one another's steps."""
    return "run" in data.columns and data["run"].drop_nulls().n_unique() > 1


def of_each_run(data: pl.DataFrame, column: str) -> tuple[pl.Series, str]:
    """A column of fractions in whole numbers, of each run in its own unit, and how they were found, in words."""
    at = data.select("run", at=pl.col(column).round_sig_figs(_DIGITS))
    parts: list[pl.DataFrame] = []
    hows: dict[str, None] = {}
    for _, rows in at.drop_nulls("at").unique(maintain_order=True).group_by("run", maintain_order=True):
        rows = rows.sort("at")
        number, how = counted_in(rows["at"])
        parts.append(rows.with_columns(number.cast(pl.Float64).alias("number")))
        hows[how] = None
    placed = at.join(pl.concat(parts), on=["run", "at"], how="left", nulls_equal=True, maintain_order="left")
    shown = [*hows][:_SHOWN]
    return placed["number"], "; ".join(shown) + (f" and {len(hows) - _SHOWN} more" if len(hows) > _SHOWN else "")


def counted_in(told: pl.Series) -> tuple[pl.Series, str]:
    """Whole numbers for distinct fractions in rising order, and how they were found, in words."""
    closest = float(str(told.diff().min())) if told.len() > 1 else 1.0
    most = 0 if closest <= 0 else _PARTS if told.len() >= _MANY else 1
    for parts in range(1, most + 1):
        counts = told / closest * parts
        off = (counts - counts.round()).abs()
        if float(str(counts.abs().max())) < _COUNTED and bool((off < _OFF).all()):
            return counts.round(), f"counted in units of {closest / parts:.6g}"
    return told.rank("dense").cast(pl.Float64) - 1, "numbered from 0 in their order"


def drop_empty(data: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """Rows in which something but the keys is logged."""
    rest = [name for name in data.columns if name not in keys]
    if not rest:
        return data
    if any(data[name].null_count() == 0 for name in rest[:64]):
        return data
    return data.filter(pl.any_horizontal(pl.col(rest).is_not_null()))


def repeated(data: pl.DataFrame) -> list[str]:
    """A note about rows that say once more what the row above them says of the same step, but for the clock."""
    keys = [name for name in ("run", "rank", "step") if name in data.columns]
    if data.height < 2:
        return []
    same = pl.all_horizontal(pl.col(keys).eq_missing(pl.col(keys).shift())) & (pl.int_range(pl.len()) > 0)
    at = data.select(same).to_series().arg_true()
    told = [name for name in data.columns if name not in (*_KEYS, *_CLOCKS)]
    if not at.len() or not told:
        return []
    rows, above = data[at].select(told), data[at - 1].select(told)
    alike = rows.select(
        pl.all_horizontal(pl.col(name).eq_missing(above[name]) for name in told)
        & pl.any_horizontal(pl.col(told).is_not_null())
    )
    count = int(alike.to_series().sum())
    if not count:
        return []
    return [f"{count:,} {'row only repeats' if count == 1 else 'rows only repeat'} the one above, of the same step"]


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
