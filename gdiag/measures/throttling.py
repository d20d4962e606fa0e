"""What GPU telemetry says about each GPU over time: load, clocks, heat, power, the reasons for lowered clocks.

Written as partial → merge → finish: one machine runs one partial, a fleet runs one per file and merges them. A partial
counts rows in bins of time per GPU, so that its size does not depend on how often a file was sampled.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import polars as pl

from gdiag.reference import gpus as reference

KEYS: Final = ("host", "gpu")
HOT_MARGIN: Final = 5.0
"""Within how many °C of its slowdown temperature a GPU counts as hot enough to be throttled."""
MARGIN_LEFT: Final = 2.0
"""°C that a GPU reports as left to its slowdown temperature, up to which it counts as hot."""
SLOW_CLOCK: Final = 0.93
"""Share of its highest clock below which a loaded GPU counts as slowed (diagnosis.md C3)."""
AT_LIMIT: Final = 0.95
"""Share of its limit from which a GPU's power stands at it, and the limit explains the clock."""
CAPPED_POWER: Final = 0.97
"""The same where no reason is logged and single samples date the onset: a regulator holds power within a few per cent."""
CAPPED_CLOCK: Final = 0.97
"""Share of the highest clock below which power at its limit costs clock, where no reason is logged."""
BUSY_UTILIZATION: Final = 50.0
BUSY_POWER: Final = 0.4
"""Share of the power limit that stands for load where utilization is not logged."""

_SUMS: Final = (
    "rows", "judged", "busy", "idle", "thermal", "power_cap", "brake", "hardware", "hot_slow", "slow", "clocked",
    "temperature_sum", "temperature_rows", "power_sum", "power_rows", "clock_sum", "clock_rows", "memory_sum", "memory_rows",
)  # fmt: skip
_LEAST: Final = (
    "first_time",
    "clock_least",
    "margin_least",
    "limit_least",
    "ecc_uncorrected_least",
    "ecc_corrected_least",
    "throttle_time_least",
)
_MOST: Final = (
    "last_time", "temperature_most", "memory_temperature_most", "limit_most", "default_limit", "clock_most",
    "ecc_uncorrected_most", "ecc_corrected_most", "throttle_time_most", "remap_uncorrectable", "remap_pending", "remap_failure",
    "memory_total", "utilization_most",
)  # fmt: skip


@dataclass(frozen=True)
class Partial:
    """Counts of one or more files."""

    width: float
    """Width of a bin [s], or in rows where no time was logged."""
    timed: bool
    bins: pl.DataFrame
    """One row per host, gpu and bin: sums, least and most of its rows; see finish."""
    units: pl.DataFrame
    """One row per host and gpu: uuid, bus_id, model, source and line of the first row."""


def width_for(gpus: pl.DataFrame, most: int = 4000) -> float:
    """A bin width that keeps single samples apart where they are not too many: the usual sampling interval, at least 1."""
    if "time" not in gpus.columns or not gpus["time"].count():
        return 1.0
    per_gpu = gpus.select(*_keys(gpus), "time").sort("time")
    gaps = per_gpu.select(pl.col("time").diff().over(list(KEYS)).alias("gap"))["gap"]
    usual = gaps.filter(gaps > 0).median()
    low, high = gpus["time"].min(), gpus["time"].max()
    span = float(high) - float(low)  # type: ignore[arg-type]
    return max(1.0, float(usual or 1.0), span / most)  # type: ignore[arg-type]


def partial(gpus: pl.DataFrame, width: float, limits: Mapping[str, float] | None = None) -> Partial:
    """Counts of rows of `gpus`, in bins of `width` seconds.

    `limits`: model → temperature at which its clocks are lowered [°C], where a log states it; it wins over the data file.
    """
    timed = "time" in gpus.columns and gpus["time"].count() > 0
    rows = _complete(gpus)
    if timed:
        rows = rows.filter(pl.col("time").is_finite() & (pl.col("time").abs() < 2.0**53))
    else:
        rows = rows.with_columns(pl.int_range(pl.len()).over(list(KEYS)).cast(pl.Float64).alias("time"))
    rows = rows.with_columns(
        (pl.col("time") / width).floor().cast(pl.Int64).alias("bin"),
        _of_model(rows, lambda row: row.max_operating or row.slowdown, limits or {}).alias("slowdown"),
        pl.coalesce("clock_sm_max", _of_model(rows, lambda row: row.clock)),
    )
    rows = rows.with_columns(_states(some_blind=rows["reasons"].null_count() > 0))
    bins = rows.group_by(*KEYS, "bin").agg(_counts()).sort(*KEYS, "bin")
    units = rows.group_by(*KEYS, maintain_order=True).agg(
        pl.col("uuid", "bus_id", "model", "source", "line").drop_nulls().first(), pl.col("slowdown").max()
    )
    return Partial(width, timed, bins, units)


def merge(parts: Sequence[Partial]) -> Partial:
    """One partial of many with the same width: bins of the same GPU and moment are added."""
    if len(parts) == 1:
        return parts[0]
    bins = pl.concat([p.bins for p in parts])
    if not pl.concat([p.units.select(KEYS) for p in parts]).is_unique().all():  # else no bin is another's
        bins = bins.group_by(*KEYS, "bin").agg(pl.col(*_SUMS).sum(), pl.col(*_LEAST).min(), pl.col(*_MOST).max())
    bins = bins.sort(*KEYS, "bin")
    units = (
        pl.concat([p.units for p in parts])
        .group_by(*KEYS, maintain_order=True)
        .agg(pl.col("uuid", "bus_id", "model", "source", "line").drop_nulls().first(), pl.col("slowdown").max())
    )
    return Partial(parts[0].width, all(p.timed for p in parts), bins, units)


def _keys(gpus: pl.DataFrame) -> list[pl.Expr]:
    return [
        (pl.col(k) if k in gpus.columns else pl.lit(None)).cast(t).alias(k)
        for k, t in (("host", pl.String), ("gpu", pl.Int32))
    ]


def _complete(gpus: pl.DataFrame) -> pl.DataFrame:
    """Every column that is used, null where it was not logged; GPUs of one index but several UUIDs are kept apart by them."""
    numeric = (
        "time", "temperature", "memory_temperature", "temperature_margin", "power", "power_limit", "power_default_limit",
        "clock_sm", "clock_sm_max", "utilization", "memory_used", "memory_total", "ecc_corrected", "ecc_uncorrected",
        "remap_uncorrectable", "throttle_time",
    )  # fmt: skip
    texts = ("uuid", "bus_id", "model")
    numbers = [
        (pl.col(c) if c in gpus.columns else pl.lit(None, pl.Float64)).cast(pl.Float64).alias(c) for c in numeric
    ]
    words = [(pl.col(c) if c in gpus.columns else pl.lit(None, pl.String)).cast(pl.String).alias(c) for c in texts]
    others = [
        (pl.col(c) if c in gpus.columns else pl.lit(None)).cast(t).alias(c)
        for c, t in (
            ("reasons", pl.Int64),
            ("remap_pending", pl.Boolean),
            ("remap_failure", pl.Boolean),
            ("source", pl.Int32),
            ("line", pl.Int64),
        )
    ]
    rows = gpus.select(*_keys(gpus), *numbers, *words, *others).with_columns(pl.col("gpu").fill_null(0))
    shared = (
        rows.filter(pl.col("uuid").is_not_null())
        .group_by(*KEYS)
        .agg(pl.col("uuid").n_unique().alias("n"))
        .filter(pl.col("n") > 1)
    )
    if shared.height and rows["host"].null_count() == rows.height:
        # Files of several hosts without a host in them: the UUID is all that tells their GPUs apart.
        rows = rows.with_columns(("?" + pl.col("uuid").str.slice(0, 12)).alias("host"))
    return rows


def _of_model(
    rows: pl.DataFrame, figure: Callable[[reference.Gpu], float | None], stated: Mapping[str, float] | None = None
) -> pl.Expr:
    """A figure of each row's model as stated in a log, else from the data file; null for models that are not listed."""
    known = {name: row for name in rows["model"].unique().drop_nulls() if (row := reference.gpu(name)) is not None}
    figures: dict[str, float | None] = {name: figure(row) for name, row in known.items()}
    figures |= stated or {}
    if not figures:
        return pl.lit(None, pl.Float64)
    return pl.col("model").replace_strict(figures, default=None, return_dtype=pl.Float64)


def _states(*, some_blind: bool) -> list[pl.Expr]:
    """What each row shows; what stands in for reasons is computed only where some row has none."""
    reasons = pl.col("reasons").fill_null(0)

    def has(bits: int) -> pl.Expr:
        return (reasons & bits) != 0

    loaded = (
        pl.when(pl.col("utilization").is_not_null())
        .then(pl.col("utilization") >= BUSY_UTILIZATION)
        .otherwise((pl.col("power") >= BUSY_POWER * pl.col("power_limit")).fill_null(True))
    )
    busy = loaded & ~has(reference.IDLE)
    hot = (pl.col("temperature") >= pl.col("slowdown") - HOT_MARGIN).fill_null(False) | (
        pl.col("temperature_margin") <= MARGIN_LEFT
    ).fill_null(False)
    slow = (pl.col("clock_sm") < SLOW_CLOCK * pl.col("clock_sm_max")).fill_null(False)
    hardware = has(reference.HW_SLOWDOWN) & ~has(reference.THERMAL | reference.POWER_BRAKE)
    blind = pl.col("reasons").is_null() if some_blind else pl.lit(value=False)
    at_limit = (pl.col("power") >= AT_LIMIT * pl.col("power_limit")).fill_null(False)
    held = (pl.col("clock_sm") < CAPPED_CLOCK * pl.col("clock_sm_max")).fill_null(False)
    return [
        busy.alias("is_busy"),
        has(reference.IDLE).alias("is_idle"),
        (has(reference.THERMAL) | (hardware & hot)).alias("is_thermal"),
        (
            (
                has(reference.POWER_CAP)
                | (blind & held & (pl.col("power") >= CAPPED_POWER * pl.col("power_limit")).fill_null(False))
            )
            & busy
        ).alias("is_capped"),
        has(reference.POWER_BRAKE).alias("is_braked"),
        (hardware & ~hot).alias("is_cut"),
        (blind & busy & slow & hot & ~at_limit).alias("is_hot_slow"),
        (busy & slow).alias("is_slow"),
    ]


def _counts() -> list[pl.Expr]:
    busy = pl.col("is_busy")

    def total(name: str, when: pl.Expr | None = None) -> pl.Expr:
        column = pl.col(name) if when is None else pl.when(when).then(pl.col(name))
        return column.sum()

    def known(name: str, when: pl.Expr | None = None) -> pl.Expr:
        column = pl.col(name) if when is None else pl.when(when).then(pl.col(name))
        return column.count().cast(pl.UInt32)

    return [
        pl.len().cast(pl.UInt32).alias("rows"), known("reasons").alias("judged"), busy.sum().alias("busy"),
        pl.col("is_idle").sum().alias("idle"), pl.col("is_thermal").sum().alias("thermal"),
        pl.col("is_capped").sum().alias("power_cap"), pl.col("is_braked").sum().alias("brake"),
        pl.col("is_cut").sum().alias("hardware"), pl.col("is_hot_slow").sum().alias("hot_slow"),
        pl.col("is_slow").sum().alias("slow"), (busy & pl.col("clock_sm_max").is_not_null()).sum().alias("clocked"),
        total("temperature").alias("temperature_sum"), known("temperature").alias("temperature_rows"),
        total("power", busy).alias("power_sum"), known("power", busy).alias("power_rows"),
        total("clock_sm", busy).alias("clock_sum"), known("clock_sm", busy).alias("clock_rows"),
        total("memory_used").alias("memory_sum"), known("memory_used").alias("memory_rows"),
        pl.col("time").min().alias("first_time"), pl.when(busy).then(pl.col("clock_sm")).min().alias("clock_least"),
        pl.col("temperature_margin").min().alias("margin_least"), pl.col("power_limit").min().alias("limit_least"),
        pl.col("ecc_uncorrected").min().alias("ecc_uncorrected_least"), pl.col("ecc_corrected").min().alias("ecc_corrected_least"),
        pl.col("throttle_time").min().alias("throttle_time_least"),
        pl.col("time").max().alias("last_time"), pl.col("temperature").max().alias("temperature_most"),
        pl.col("memory_temperature").max().alias("memory_temperature_most"), pl.col("power_limit").max().alias("limit_most"),
        pl.col("power_default_limit").max().alias("default_limit"), pl.col("clock_sm_max").max().alias("clock_most"),
        pl.col("ecc_uncorrected").max().alias("ecc_uncorrected_most"), pl.col("ecc_corrected").max().alias("ecc_corrected_most"),
        pl.col("throttle_time").max().alias("throttle_time_most"), pl.col("remap_uncorrectable").max().alias("remap_uncorrectable"),
        pl.col("remap_pending").max().alias("remap_pending"), pl.col("remap_failure").max().alias("remap_failure"),
        pl.col("memory_total").max().alias("memory_total"), pl.col("utilization").max().alias("utilization_most"),
    ]  # fmt: skip
