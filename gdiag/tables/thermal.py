"""A line per GPU, its temperature over time as a strip, and what the telemetry can and cannot say."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import numpy as np
import polars as pl

from gdiag.measures.run import RunView
from gdiag.measures.telemetry import Telemetry
from gdiag.model import Column, Report, Table, Value
from gdiag.reference import gpus as reference
from gdiag.schema import Records

MOST: Final = 48
"""Lines per table; of larger fleets the most throttled and hottest GPUs are shown."""
STRIP: Final = 40
"""Signs of a strip."""
LEVELS: Final = "▁▂▃▄▅▆▇"
THROTTLED: Final = "█"
COLDEST: Final = 30.0
"""Temperature of the lowest sign [°C]; the highest stands for the model's limit."""
UNKNOWN_LIMIT: Final = 90.0


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def with_tables(report: Report, records: Records, counted: Telemetry | None = None) -> Report:
    """The report with the GPU tables of every run that has telemetry, of rows or counted by gdiag.fleet."""
    tables: list[Table] = []
    for run in records.runs:
        view = RunView(run, records, counted)
        if view.telemetry is not None:
            name = f" of run {run.id}" if len(records.runs) > 1 else ""
            tables += [_per_gpu(view.telemetry, name), _strips(view.telemetry, name), _judged(view, name)]
    return replace(report, tables=(*report.tables, *(t for t in tables if t.rows)))


def _chosen(view: Telemetry) -> pl.DataFrame:
    """All GPUs in order, or the MOST throttled and hottest of a larger number."""
    rows = view.health.per_gpu
    if rows.height <= MOST:
        return rows
    trouble = pl.max_horizontal(pl.col("thermal", "brake", "hardware").fill_nan(0).fill_null(0))
    worst = rows.with_columns(trouble.alias("trouble")).sort(
        "trouble", "temperature_most", descending=True, nulls_last=True
    )
    return worst.head(MOST).sort("host", "gpu").drop("trouble")


def _per_gpu(view: Telemetry, name: str) -> Table:
    rows = _chosen(view)
    usual = rows["clock"].fill_nan(None).median()
    relative = (
        100 * rows["clock"] / usual if isinstance(usual, int | float) and usual else rows["clock"].clear(rows.height)
    )
    apart = rows.height > 1 and relative.is_finite().any() and bool((relative.drop_nulls().drop_nans() < 98).any())
    throttled = rows.select(
        pl.when((pl.col("judged") > 0) | pl.col("slow").is_not_nan())
        .then(pl.max_horizontal(pl.col("thermal", "power_cap", "brake", "hardware")))
        .alias("t")
    )["t"]
    columns: list[tuple[Column, list[Value | None]]] = [
        (Column("host"), [_host(h) for h in rows["host"]]), (Column("gpu"), rows["gpu"].to_list()),
        (Column("mean", "°C"), _round(rows["temperature"])), (Column("max", "°C"), _round(rows["temperature_most"])),
        (Column("HBM", "°C"), _round(rows["memory_temperature_most"])), (Column("slow", "%"), _percent(throttled)),
        (Column("by"), list(_why(rows))), (Column("clock", "MHz"), _round(rows["clock"])),
        (Column("peers", "%"), _round(relative) if apart else []),
        (Column("power", "W"), _round(rows["power"])), (Column("limit", "W"), _round(rows["limit_least"])),
        (Column("ECC"), _round(rows["ecc_uncorrected_most"])),
    ]  # fmt: skip
    kept = [(c, v) for c, v in columns if any(x is not None and x != "" for x in v)]
    total = view.health.units.height
    title = (
        f"GPUs{name}"
        if rows.height == total
        else f"GPUs{name}: {rows.height} of {total}, the most throttled and hottest"
    )
    models = ", ".join(sorted(set(view.health.units["model"].drop_nulls())))
    return Table(
        f"{title}{f' ({models})' if models else ''}",
        tuple(c for c, _ in kept),
        tuple(zip(*(v for _, v in kept), strict=True)),
    )


def _why(rows: pl.DataFrame) -> Iterator[str]:
    names = {"thermal": "heat", "power_cap": "power cap", "brake": "power brake", "hardware": "hardware slowdown"}
    for row in rows.iter_rows(named=True):
        found = {
            text: row[key]
            for key, text in names.items()
            if row[key] is not None and np.isfinite(row[key]) and row[key] > 0
        }
        if found:
            yield ", ".join(sorted(found, key=lambda text: -found[text]))
        else:
            yield "" if row["judged"] else "not logged"


def _strips(view: Telemetry, name: str) -> Table:
    part = view.health.partial
    low, high = view.health.span
    width = max((high - low) / STRIP, 1e-9)
    chosen = _chosen(view)
    cells = (
        part.bins.join(chosen.select("host", "gpu"), on=["host", "gpu"], how="semi", nulls_equal=True)
        .with_columns(((pl.col("first_time") - low) / width).floor().clip(0, STRIP - 1).cast(pl.Int32).alias("cell"))
        .group_by("host", "gpu", "cell")
        .agg(
            (pl.col("temperature_sum").sum() / pl.col("temperature_rows").sum()).alias("t"),
            ((pl.col("thermal") + pl.col("hot_slow") + pl.col("brake") + pl.col("hardware")).sum() > 0).alias(
                "throttled"
            ),
        )
    )
    if not part.bins["temperature_rows"].sum() or _one_sample(view):
        return Table("Temperature over time", (), ())
    limits = {(h, g): s for h, g, s in part.units.select("host", "gpu", "slowdown").iter_rows()}
    drawn: list[tuple[Value | None, ...]] = []
    for host, gpu in chosen.select("host", "gpu").iter_rows():
        own = cells.filter(pl.col("host").eq_missing(pl.lit(host)) & (pl.col("gpu") == gpu))
        strip = [" "] * STRIP
        for cell, temperature, throttled in own.select("cell", "t", "throttled").iter_rows():
            strip[cell] = THROTTLED if throttled else _sign(temperature, limits[(host, gpu)])
        drawn.append((_host(host), gpu, "".join(strip)))
    hours = (high - low) / 3600
    until = f"{high - low:.0f} rows" if not part.timed else f"{hours:.1f} h" if hours >= 2 else f"{60 * hours:.0f} min"
    has_host = any(row[0] is not None for row in drawn)
    columns = (Column("host"), Column("gpu"), Column(f"0 … {until}"))
    kept = tuple(drawn) if has_host else tuple(row[1:] for row in drawn)
    return Table(
        f"Temperature over time{name}: {LEVELS[0]} {COLDEST:.0f} °C … {LEVELS[-1]} the model's limit, {THROTTLED} throttled",
        columns if has_host else columns[1:],
        kept,
    )


def _one_sample(view: Telemetry) -> bool:
    """Whether every GPU was looked at once."""
    return bool(view.health.partial.bins["rows"].sum() == view.health.units.height)


def _sign(temperature: float | None, limit: float | None) -> str:
    if temperature is None or not np.isfinite(temperature):
        return "·"
    share = (temperature - COLDEST) / ((limit or UNKNOWN_LIMIT) - COLDEST)
    return LEVELS[int(np.clip(share * len(LEVELS), 0, len(LEVELS) - 1))]


def _judged(run: RunView, name: str) -> Table:
    """What each question was answered from; a column that is absent is said, for silence would read as health."""
    view = run.telemetry
    assert view is not None
    has = view.columns
    thermal = view.known_reasons & reference.THERMAL
    if thermal:
        throttling = "judged by event reasons" + (" and clocks" if "clock_sm" in has else ", no clock column")
    elif {"clock_sm", "clock_sm_max"} <= has and has & {"temperature", "temperature_margin"}:
        throttling = "judged by clock and temperature together: no event-reason column"
    elif "clock_sm" in has and has & {"temperature", "temperature_margin"} and view.health.units["slowdown"].count():
        throttling = (
            "judged by temperature and clocks against their own past: no event-reason and no highest-clock column"
        )
    else:
        lacking = [
            text
            for text, present in (
                ("event reasons", False),
                ("SM clock", "clock_sm" in has),
                ("highest SM clock", "clock_sm_max" in has),
                ("temperature", "temperature" in has),
            )
            if not present
        ]
        throttling = f"cannot be judged: no {', no '.join(lacking)} column"
    power = "cannot be judged: no event reasons or no power column"
    if view.known_reasons & reference.POWER_CAP and "power" in has:
        power = "judged"
    elif {"power", "power_limit", "clock_sm"} <= has:
        power = "judged by power against its limit and clocks: no event-reason column"
    ecc = "judged" if has & {"ecc_uncorrected", "remap_failure"} else "not monitored: no ECC or row-remap column"
    clock = (
        "placed on the step log"
        if view.alignment is not None and view.alignment.usable
        else "not placed: no times or no step log"
    )
    if view.alignment is not None and (said := view.alignment.said()):
        clock = said
    if _one_sample(view):
        clock = f"one sample: nothing over time can be judged{f'; {clock}' if view.alignment is not None else ''}"
    load = "seen" if view.health.busy else "none seen: an idle GPU says nothing of throttling"
    if not has & {"utilization", "power", "reasons"}:
        load = "assumed: no utilization, power or event-reason column"
    rows = (
        ("load", load),
        ("thermal throttling", throttling),
        ("power limit and brake", power),
        ("memory errors", ecc),
        ("time", clock),
    )
    return Table(f"What was judged{name}", (Column("question"), Column("answer")), rows)


def _round(values: pl.Series) -> list[Value | None]:
    return [
        None if v is None or not np.isfinite(v) else round(float(v), 1) if abs(v) < 100 and v % 1 else round(v)
        for v in values
    ]


def _percent(values: pl.Series) -> list[Value | None]:
    return [None if v is None or not np.isfinite(v) else round(100 * float(v), 1) for v in values]


def _host(host: str | None) -> str | None:
    return None if host is None or host.startswith("?") else host
