"""Judgeable facts from merged telemetry counts: throttling events and a line per GPU."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal

import polars as pl

from gdiag.measures.throttling import KEYS, Partial

Kind = Literal["thermal", "power cap", "power brake", "hardware slowdown"]
Unit = tuple[str | None, int]
"""Host (None where not logged) and index of a GPU."""

_COUNT: Final[dict[Kind, pl.Expr]] = {
    "thermal": pl.col("thermal") + pl.col("hot_slow"),
    "power cap": pl.col("power_cap"),
    "power brake": pl.col("brake"),
    "hardware slowdown": pl.col("hardware"),
}
COUNTED: Final = 0.02
"""Share of the time between two samples that the counter of throttled time must grow by."""
LEAST_ROWS: Final = 3
"""Samples that show a reason before a GPU counts as throttled: single ones occur when load starts and stops."""


@dataclass(frozen=True, slots=True)
class Event:
    """A stretch of time in which GPUs ran below their clocks for one reason."""

    kind: Kind
    start: float
    """First sample that shows it [s as logged; row number where no time was logged]."""
    end: float
    gpus: tuple[Unit, ...]
    rows: int
    """Samples that show it."""
    share: float
    """Share of these GPUs' loaded samples inside the event that show it."""
    of_all: float
    """Share of these GPUs' loaded samples of the whole log that show it."""
    by_clocks: int
    """How many of the samples were told by clock and temperature, no reason being logged."""
    clock_inside: float | None
    """Mean SM clock under load where it shows [MHz]."""
    clock_outside: float | None
    """Mean SM clock of the same GPUs under load where it does not."""
    clock_max: float | None
    temperature: float | None
    """Highest core temperature inside [°C]."""
    temperature_before: float | None
    """Mean core temperature of the same GPUs in the first tenth of the log [°C]."""
    memory_temperature: float | None
    margin: float | None
    power: float | None
    """Mean power under load inside [W]."""
    power_limit: float | None
    """Lowest limit inside [W]."""
    default_limit: float | None


@dataclass(frozen=True)
class GpuHealth:
    """Everything judged from one run's telemetry, before thresholds."""

    partial: Partial

    @cached_property
    def span(self) -> tuple[float, float]:
        """First and last moment."""
        low, high = self.partial.bins["first_time"].min(), self.partial.bins["last_time"].max()
        return (float(low), float(high))  # type: ignore[arg-type]

    @cached_property
    def units(self) -> pl.DataFrame:
        """One row per GPU: host, gpu, uuid, bus_id, model, source, line, slowdown."""
        return self.partial.units

    @cached_property
    def busy(self) -> bool:
        """Whether any sample was taken under load."""
        return bool(self.partial.bins["busy"].sum() > 0)

    @cached_property
    def per_gpu(self) -> pl.DataFrame:
        """One row per GPU with means, extremes and shares over the whole log."""
        return per_gpu(self.partial)

    def events(self, kind: Kind, *, gap: float = 0.2) -> list[Event]:
        """Events of one kind; stretches less than `gap` of the log apart are one event, across GPUs too."""
        return events(self.partial, kind, gap)


def per_gpu(part: Partial) -> pl.DataFrame:
    """Means, extremes and shares of every GPU; shares are of loaded samples."""
    busy = pl.col("busy").sum()
    return (
        part.bins.group_by(*KEYS)
        .agg(
            pl.col("rows").sum(), busy.alias("busy"), pl.col("judged").sum(), pl.col("first_time").min(), pl.col("last_time").max(),
            (pl.col("temperature_sum").sum() / pl.col("temperature_rows").sum()).alias("temperature"),
            pl.col("temperature_most").max(), pl.col("memory_temperature_most").max(), pl.col("margin_least").min(),
            ((pl.col("thermal") + pl.col("hot_slow")).sum() / busy).alias("thermal"),
            (pl.col("power_cap").sum() / busy).alias("power_cap"), (pl.col("brake").sum() / busy).alias("brake"),
            (pl.col("hardware").sum() / busy).alias("hardware"), (pl.col("slow").sum() / pl.col("clocked").sum()).alias("slow"),
            (pl.col("clock_sum").sum() / pl.col("clock_rows").sum()).alias("clock"), pl.col("clock_least").min(), pl.col("clock_most").max(),
            (pl.col("power_sum").sum() / pl.col("power_rows").sum()).alias("power"), pl.col("limit_least").min(), pl.col("limit_most").max(),
            pl.col("default_limit").max(), pl.col("ecc_uncorrected_least").min(), pl.col("ecc_uncorrected_most").max(),
            pl.col("ecc_corrected_least").min(), pl.col("ecc_corrected_most").max(), pl.col("remap_uncorrectable").max(),
            pl.col("remap_pending").max(), pl.col("remap_failure").max(),
        )
        .join(part.units, on=list(KEYS), how="left", nulls_equal=True)
        .sort(*KEYS)
    )  # fmt: skip


def events(part: Partial, kind: Kind, gap: float) -> list[Event]:
    """See GpuHealth.events."""
    shown = _showing(part.bins, kind).filter(pl.col("shown") > 0)
    if not shown.height:
        return []
    low, high = part.bins["first_time"].min(), part.bins["last_time"].max()
    pause = max(10 * part.width, gap * (float(high) - float(low)))  # type: ignore[arg-type]
    fresh = (pl.col("first_time") - pl.col("last_time").shift(1) > pause).fill_null(True)
    runs = (
        shown.sort("bin")
        .with_columns(fresh.cum_sum().over(list(KEYS)).alias("stretch"))
        .group_by(*KEYS, "stretch")
        .agg(pl.col("first_time").min().alias("start"), pl.col("last_time").max().alias("end"), pl.col("shown").sum())
        .filter(pl.col("shown") >= LEAST_ROWS)
        .sort("start")
    )
    found: list[Event] = []
    group: list[dict[str, object]] = []
    until = float("-inf")
    for run in runs.iter_rows(named=True):
        if group and float(run["start"]) > until + pause:
            found.append(_event(part, kind, group))
            group = []
        group.append(run)
        until = max(until, float(run["end"]))
    return [*found, _event(part, kind, group)] if group else found


def _showing(bins: pl.DataFrame, kind: Kind) -> pl.DataFrame:
    """The bins with a column `shown`: how many of their samples show the reason.

    Samples can miss what the driver's counter of throttled time holds: a bin in which it grows by 2 % of the time passed
    shows heat as well.
    """
    if kind != "thermal" or not bins["throttle_time_most"].count():
        return bins.with_columns(_COUNT[kind].alias("shown"))
    passed = pl.col("last_time") - pl.col("last_time").shift(1).over(list(KEYS))
    grown = pl.col("throttle_time_most") - pl.col("throttle_time_most").shift(1).over(list(KEYS))
    counted = ((grown > COUNTED * passed) & (pl.col("busy") > 0)).fill_null(False)
    return bins.sort(*KEYS, "bin").with_columns(
        pl.when((_COUNT[kind] == 0) & counted).then(pl.col("rows")).otherwise(_COUNT[kind]).alias("shown")
    )


def _event(part: Partial, kind: Kind, runs: list[dict[str, object]]) -> Event:
    start = min(float(r["start"]) for r in runs)  # type: ignore[arg-type]
    end = max(float(r["end"]) for r in runs)  # type: ignore[arg-type]
    chosen = pl.DataFrame(
        {"host": [r["host"] for r in runs], "gpu": [r["gpu"] for r in runs]}, schema={"host": pl.String, "gpu": pl.Int32}
    ).unique(maintain_order=True)  # fmt: skip
    own = _showing(part.bins.join(chosen, on=list(KEYS), how="semi", nulls_equal=True), kind)
    inside = own.filter((pl.col("first_time") >= start) & (pl.col("last_time") <= end))
    showing = inside.filter(pl.col("shown") > 0)
    calm = own.filter(pl.col("shown") == 0)
    low, high = part.bins["first_time"].min(), part.bins["last_time"].max()
    early = own.filter(pl.col("first_time") <= low + 0.1 * (high - low))  # type: ignore[operator]
    rows = int(showing["shown"].sum())
    return Event(
        kind=kind, start=start, end=end, gpus=tuple((h, int(g)) for h, g in chosen.sort(*KEYS).iter_rows()), rows=rows,
        share=min(1.0, rows / max(1, int(inside["busy"].sum()))), of_all=min(1.0, rows / max(1, int(own["busy"].sum()))),
        by_clocks=int(showing["hot_slow"].sum()), clock_inside=_mean(showing, "clock"), clock_outside=_mean(calm, "clock"),
        clock_max=_number(own["clock_most"].max()), temperature=_number(inside["temperature_most"].max()),
        temperature_before=_mean(early, "temperature"), memory_temperature=_number(inside["memory_temperature_most"].max()),
        margin=_number(inside["margin_least"].min()), power=_mean(showing, "power"),
        power_limit=_number(inside["limit_least"].min()), default_limit=_number(own["default_limit"].max()),
    )  # fmt: skip


def _mean(bins: pl.DataFrame, name: str) -> float | None:
    rows = float(bins[f"{name}_rows"].sum())
    return float(bins[f"{name}_sum"].sum()) / rows if rows else None


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None
