"""Metrics that follow from others: step times from a clock, ends of batch ids, units that the clock gives away."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
import polars as pl

from gdiag.ingesters.aliases import Claim
from gdiag.ingesters.values import escape

_THOUSAND: Final = (500.0, 2000.0)
"""A step time that is so many times the clock's advance per step is in milliseconds."""
_SAMPLES: Final = 100
"""Rows so far apart, each with the time of one step, may count samples or tokens: their spacing proves no unit."""
_ENOUGH: Final = 4096
"""Rows that show what a column is."""
_FEW: Final = 8
_WHOLE: Final = 1.0001
"""A share of all, but for the rounding of single precision."""
_WRONG: Final = 0.05
"""Share of the values of an accuracy that may be none, as the -1 of a step without one."""
_EARLY: Final = 1e8
"""No Unix clock is below this, s: 1973."""
_LATEST: Final = 1e20
"""No clock is above this, be it in ns."""


def read_clock(canonical: str, series: pl.Series) -> str:
    """What a column called `time` is: a Unix clock, a running clock, or the time of one step."""
    if canonical != "time":
        return canonical
    seen = series.filter(series.abs() < _LATEST).head(_ENOUGH).to_numpy()
    present = np.sort(seen)
    if not present.size or (middle := float(present[present.size // 2])) >= _EARLY:
        return canonical
    rising = present.size == 1 or float(np.mean(seen[1:] >= seen[:-1])) > 0.95
    # Of a clock that runs from 0 the last of n rows is 2n / (n + 1) times the middle one: of three 1.5 times.
    return "elapsed" if rising and float(present[-1]) > (1.5 if present.size > _FEW else 1.3) * middle else "step_time"


def derive(data: pl.DataFrame, columns: dict[str, str], claims: Mapping[str, Claim], notes: list[str]) -> pl.DataFrame:
    """Adds what follows from other columns and says so in `notes`."""
    data = _shares(_counters(data, columns, notes), columns, notes)
    if "sample_start" in data.columns and "sample_end" not in data.columns and claims["sample_start"].turn == "ids":
        data = data.with_columns(sample_end=pl.col("sample_start") + 1)
        notes.append(f"data ids are batches ({escape(columns['sample_start'], 60)})")
    if "step_time" in data.columns:
        return _milliseconds(data, columns, claims["step_time"], notes) if "step_time" in claims else data
    if "elapsed" in data.columns and _fine(data["elapsed"]):
        data = data.with_columns(step_time=_per_step(data, "elapsed"))
        columns["step_time"] = columns.get("elapsed", "elapsed")
        notes.append(f"step_time is the difference of {escape(columns['step_time'], 60)} per step")
    return data


def _shares(data: pl.DataFrame, columns: dict[str, str], notes: list[str]) -> pl.DataFrame:
    """An accuracy in percent as a share; what is neither is no accuracy."""
    if "accuracy" not in data.columns:
        return data
    name = escape(columns["accuracy"], 60)
    value = pl.col("accuracy").fill_nan(None)
    wrong = ~value.is_between(0, 100)
    bad, told = data.select(wrong.sum().alias("bad"), value.count().alias("told")).row(0)
    if 0 < bad <= _WRONG * told:
        notes.append(f"{name}: {bad:,} of {told:,} values are no accuracy and left out")
        data = data.with_columns(pl.when(~wrong.fill_null(False)).then("accuracy").alias("accuracy"))
    low, high = data.select(value.min().alias("low"), value.max().alias("high")).row(0)
    if low is None or (low >= 0 and high <= _WHOLE):
        return data
    if low < 0 or high > 100:
        notes.append(f"{name} is no accuracy: its values are {low:.4g} to {high:.4g}")
        del columns["accuracy"]
        return data.drop("accuracy")
    notes.append(f"{name} is in percent")
    return data.with_columns(pl.col("accuracy") / 100)


def _per_step(data: pl.DataFrame, clock: str) -> pl.Series:
    """Advance of a running clock per step; null where it was set back."""
    rows = data[clock].is_not_null().arg_true()
    present = data.select(clock, "step", "rank", "run")[rows]
    gap, steps = pl.col(clock).diff(), pl.col("step").diff()
    same = pl.col("rank").eq_missing(pl.col("rank").shift()) & pl.col("run").eq_missing(pl.col("run").shift())
    rate = present.select(pl.when((gap > 0) & (steps > 0) & same).then(gap / steps)).to_series()
    blank = pl.Series("step_time", [None], dtype=pl.Float64).new_from_index(0, data.height)
    return blank.scatter(rows, rate)


def _milliseconds(data: pl.DataFrame, columns: dict[str, str], found: Claim, notes: list[str]) -> pl.DataFrame:
    """A step time without a unit in its name, held against the clock."""
    clock = next((c for c in ("elapsed", "time") if c in data.columns and data[c].count() > 10), None)
    if clock is None or found.scale is not None or found.turn:
        return data
    sample = data.head(_ENOUGH)
    # A row is a step of the optimizer even where the step column counts samples or tokens.
    advance = _per_step(sample, clock).drop_nulls().median()
    apart = sample["step"].diff().drop_nulls().median()
    if isinstance(advance, float) and isinstance(apart, float) and apart >= _SAMPLES:
        advance *= apart
    middle = sample["step_time"].drop_nulls().median()
    if not isinstance(advance, float) or not isinstance(middle, float) or advance <= 0:
        return data
    if _THOUSAND[0] < middle / advance < _THOUSAND[1]:
        notes.append(f"{escape(columns['step_time'], 60)} is in milliseconds, as {escape(columns[clock], 60)} shows")
        return data.with_columns(pl.col("step_time") / 1000)
    return data


def _counters(data: pl.DataFrame, columns: dict[str, str], notes: list[str]) -> pl.DataFrame:
    """Tokens and samples that do not grow are those of one step and no counter."""
    for name in ("tokens", "samples"):
        if name in data.columns:
            told = data.filter(pl.col(name).is_not_null())
            rises = told.select(pl.col(name).diff().over("run", "rank"))[name].drop_nulls()
            grows = (rises > 0).mean() if rises.len() else 1.0
            if isinstance(grows, float) and grows < 0.7:
                notes.append(f"{escape(columns.pop(name), 60)} does not count up: not used as {name} so far")
                data = data.drop(name)
    return data


def _fine(clock: pl.Series) -> bool:
    """Whether a running clock is on most rows and finer than a tenth of the time between them."""
    present = clock.drop_nulls()
    if present.len() < 3 or present.len() < 0.5 * clock.len():
        return False
    whole = bool((present == present.round()).all())
    gap = present.diff().median()
    return not whole or (isinstance(gap, float) and gap >= 10.0)
