"""GPU telemetry joined to the steps: where an event lies, and what it did to the step time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl

from gdiag.measures import clock_alignment, throttling
from gdiag.measures.clock_alignment import Alignment
from gdiag.measures.gpu_health import GpuHealth
from gdiag.measures.step_time import StepTimes
from gdiag.measures.throttling import Partial
from gdiag.reference import gpus as reference

ALL_REASONS: Final = 0x1FF


@dataclass(frozen=True, slots=True)
class Telemetry:
    """One run's telemetry and its place on the run's time axis."""

    health: GpuHealth
    alignment: Alignment | None
    known_reasons: int
    """Bits of the event reasons that were logged at all."""
    zone_known: bool
    columns: frozenset[str]
    """Columns of `gpus` with values."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where an event lies in steps and on the step log's clock, and what it did to the step time."""

    step: int | None
    last_step: int | None
    time: float | None
    last_time: float | None
    zone_known: bool
    effect: float | None
    """Mean step time inside over the usual one before, less 1; None without steps before and inside."""
    seconds_lost: float | None
    gpu_hours: float | None
    """Seconds lost × all GPUs seen."""


def telemetry(
    gpus: pl.DataFrame, columns: Iterable[Mapping[str, str]], stamps: np.ndarray[tuple[int], np.dtype[np.float64]],
    elapsed: np.ndarray[tuple[int], np.dtype[np.float64]] | None, facts: pl.DataFrame | None = None,
) -> Telemetry | None:  # fmt: skip
    """Counts of a run's `gpus` rows, and their offset to the times at which its steps ended.

    `columns` are the sources' canonical → printed names: they say which reasons were logged. None without rows.
    """
    if not gpus.height:
        return None
    part = throttling.partial(gpus, throttling.width_for(gpus), stated_limits(facts))
    if not part.bins.height:
        return None
    known = "zone_known" in gpus.columns and bool(gpus["zone_known"].fill_null(True).all())
    logged = frozenset(name for name in gpus.columns if gpus[name].count())
    return of_partial(part, columns, stamps, elapsed, zone_known=known, logged=logged)


def of_partial(
    part: Partial, columns: Iterable[Mapping[str, str]], stamps: np.ndarray[tuple[int], np.dtype[np.float64]],
    elapsed: np.ndarray[tuple[int], np.dtype[np.float64]] | None, *, zone_known: bool, logged: frozenset[str],
) -> Telemetry:  # fmt: skip
    """Merged counts, of one machine or of a fleet, placed on the time axis of a run's steps (no stamps: of none)."""
    alignment = None
    if part.timed:
        moments = part.bins.group_by("bin").agg(
            pl.col("first_time").min().alias("time"), (pl.col("busy").sum() / pl.col("rows").sum()).alias("busy")
        )
        alignment = clock_alignment.align(stamps, moments.sort("bin"), zone_known=zone_known, elapsed=elapsed)
    return Telemetry(GpuHealth(part), alignment, known_reasons(columns), zone_known, logged)


def stated_limits(facts: pl.DataFrame | None) -> dict[str, float]:
    """Model → temperature at which its clocks are lowered, as `nvidia-smi -q` of the same machines states it [°C]."""
    limits: dict[str, float] = {}
    if facts is None or not facts.height:
        return limits
    for key in ("slowdown_temperature", "max_operating_temperature"):  # the lower one is taken where both are stated
        for model, value in facts.filter(pl.col("key") == key).select("scope", "value").iter_rows():
            limits[model] = float(value)
    return limits


def known_reasons(columns: Iterable[Mapping[str, str]]) -> int:
    """Bits of the event reasons that the sources log: all with the mask, else those with a column of their own."""
    bits = {r.name: r.bit for r in reference.reasons()}
    known = 0
    for named in columns:
        for printed in named.get("reasons", "").split(", "):
            if printed:
                known |= bits.get(printed.rsplit(".", 1)[-1].split(" ")[0].lower(), ALL_REASONS)
    return known


def place(
    view: Telemetry, times: StepTimes | None, start: float, end: float, parts: Sequence[tuple[float, float]] = ()
) -> Place:
    """Where the stretch `start` … `end` of telemetry time lies; `parts` are the moments inside that count, if not all."""
    alignment, timed = view.alignment, view.health.partial.timed
    offset = alignment.offset if alignment is not None and alignment.how != "load start" else 0.0
    sure = view.zone_known or (alignment is not None and alignment.how in ("inferred", "same clock"))
    time, last_time = (start + offset, end + offset) if timed else (None, None)
    nowhere = Place(None, None, time, last_time, sure, None, None, None)
    if alignment is None or not alignment.usable or times is None or times.rate:
        return nowhere
    stamps = step_stamps(times)
    if not np.isfinite(stamps).any():
        return nowhere
    first = clock_alignment.step_at(start + alignment.offset, stamps, times.step)
    last = clock_alignment.step_at(min(end + alignment.offset, float(stamps[-1])), stamps, times.step)
    if first is None:
        return nowhere
    inside = np.zeros(len(times), dtype=bool)
    for a, b in parts or [(start, end)]:
        inside |= (stamps >= a + alignment.offset) & (stamps - times.seconds <= b + alignment.offset)
    inside &= times.judged
    before = times.judged & (stamps < start + alignment.offset)
    effect = lost = hours = None
    if inside.sum() >= 3 and before.sum() >= 10:
        usual = float(np.median(times.seconds[before][-500:]))
        effect = float(np.mean(times.seconds[inside]) / usual - 1)
        interval = float(np.median(np.diff(times.step))) if len(times) > 1 else 1.0
        lost = max(0.0, float(np.sum(times.seconds[inside] - usual)) * interval)
        hours = lost * view.health.units.height / 3600
    return Place(first, last, time, last_time, sure, effect, lost, hours)


def step_stamps(times: StepTimes) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Time at the end of each step: as logged, else put together from the step times (elapsed since the first)."""
    if np.isfinite(times.time).sum() >= 2:
        known = np.flatnonzero(np.isfinite(times.time))
        return np.interp(np.arange(len(times)), known, times.time[known])
    gaps = np.diff(times.step, prepend=times.step[0]).astype(float)
    return np.asarray(np.cumsum(gaps * times.seconds))
