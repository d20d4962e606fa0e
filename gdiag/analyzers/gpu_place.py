"""What the GPU analyzers share: the place of an event, the GPUs' names, and figures all of them carry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gdiag.measures.clock_drops import Drop
from gdiag.measures.gpu_health import Event, Unit
from gdiag.measures.run import RunView
from gdiag.measures.telemetry import Place, Telemetry
from gdiag.model import Location, Measure


def located(run: RunView, units: Sequence[Unit], start: float, end: float) -> tuple[Location, Place]:
    """Location of an event of these GPUs between two moments of the telemetry, and its place among the steps.

    One GPU is named by host and index; GPUs of one host by the host; GPUs of several hosts by neither.
    """
    view = run.telemetry
    assert view is not None
    place = run.placed(start, end)
    assert place is not None
    hosts = {host for host, _ in units}
    row = _row(view, units[0]) if units else {}
    where = run.where(
        row, step=place.step, last_step=place.last_step, time=place.time, last_time=place.last_time,
        host=_host(next(iter(hosts))) if len(hosts) == 1 else None, gpu=units[0][1] if len(units) == 1 else None,
    )  # fmt: skip
    return replace(where, zone_known=place.zone_known), place


def _row(view: Telemetry, unit: Unit) -> dict[str, object]:
    for row in view.health.units.iter_rows(named=True):
        if (row["host"], row["gpu"]) == unit:
            return {"source": row["source"], "line": row["line"]}
    return {}


def _host(host: str | None) -> str | None:
    """A host as logged; GPUs told apart by UUID alone have none."""
    return None if host is None or host.startswith("?") else host


def named(units: Sequence[Unit], total: int) -> str:
    """The GPUs in words: GPU 2 of node-3, all 8 GPUs, 3 of 16 GPUs (0, 4, 7 of node-1)."""
    if len(units) == 1:
        host, index = units[0]
        return f"GPU {index}{f' of {host}' if _host(host) else ''}"
    if len(units) == total:
        return f"all {total} GPUs"
    hosts = {host for host, _ in units}
    of = (
        f" of {next(iter(hosts))}"
        if len(hosts) == 1 and _host(next(iter(hosts)))
        else f" of {len(hosts)} hosts"
        if len(hosts) > 1
        else ""
    )
    return (
        f"{len(units)} of {total} GPUs ({', '.join(str(i) for _, i in units[:8])}{', …' if len(units) > 8 else ''}{of})"
    )


def figures(run: RunView, event: Event, place: Place, limit: float) -> tuple[Measure, ...]:
    """Evidence of a throttling event: share of samples, clocks, heat, power, effect on step time."""
    view = run.telemetry
    assert view is not None
    told = [
        Measure("gpus", len(event.gpus)),
        Measure("gpus_total", view.health.units.height),
        Measure("throttled_share", round(100 * event.share, 2), "%"),
        Measure("throttled_share_of_run", round(100 * event.of_all, 2), "%", 100 * limit),
        Measure("samples", event.rows),
        Measure("duration", round(event.end - event.start, 1), "s" if view.health.partial.timed else "row"),
    ]
    pairs = (
        ("clock_throttled", event.clock_inside, "MHz", event.clock_max), ("clock_otherwise", event.clock_outside, "MHz", None),
        ("temperature", event.temperature, "°C", _limit(view, event)), ("temperature_before", event.temperature_before, "°C", None),
        ("memory_temperature", event.memory_temperature, "°C", None), ("temperature_margin", event.margin, "°C", 0.0),
        ("power", event.power, "W", event.power_limit), ("default_power_limit", event.default_limit, "W", None),
        ("step_time_effect", None if place.effect is None else 100 * place.effect, "%", None),
        ("seconds_lost", place.seconds_lost, "s", None), ("gpu_hours_lost", place.gpu_hours, "h", None),
    )  # fmt: skip
    told += [Measure(name, round(v, 2), unit, bound) for name, v, unit, bound in pairs if v is not None]
    if event.clock_inside is not None and (event.clock_outside or event.clock_max):
        usual = event.clock_outside or event.clock_max or 1.0
        told.append(Measure("clock_loss", round(100 * (1 - event.clock_inside / usual), 2), "%"))
    if event.by_clocks:
        told.append(
            Measure("told_by", "clocks and temperature" if event.by_clocks == event.rows else "reasons and clocks")
        )
    if view.alignment is not None and (said := view.alignment.said()):
        told.append(Measure("clock_offset", said))
    return tuple(told)


def of_drop(drop: Drop, place: Place) -> tuple[Measure, ...]:
    """Evidence of clocks that fell below their own past: clocks, heat, power and limits, effect on step time."""
    pairs = (
        ("clock_before", drop.clock_before, "MHz", None), ("clock_throttled", drop.clock, "MHz", None),
        ("throttled_share", 100 * drop.share, "%", None), ("temperature", drop.temperature, "°C", drop.limit),
        ("power", drop.power, "W", drop.power_limit), ("power_limit_before", drop.power_limit_before, "W", None),
        ("clock_loss", 100 * (1 - drop.clock / drop.clock_before), "%", None),
        ("step_time_effect", None if place.effect is None else 100 * place.effect, "%", None),
        ("seconds_lost", place.seconds_lost, "s", None), ("gpu_hours_lost", place.gpu_hours, "h", None),
    )  # fmt: skip
    told = [Measure(name, round(v, 2), unit, bound) for name, v, unit, bound in pairs if v is not None]
    return (Measure("gpus", len(drop.units)), *told)


def _limit(view: Telemetry, event: Event) -> float | None:
    for row in view.health.units.iter_rows(named=True):
        if (row["host"], row["gpu"]) == event.gpus[0]:
            return float(row["slowdown"]) if row["slowdown"] is not None else None
    return None


def effect(place: Place) -> str:
    """The end of a sentence that says what happened to the step time, empty when it cannot be told."""
    if place.effect is None:
        return ""
    if abs(place.effect) < 0.01:
        return ", step time unchanged"
    return f", step time {100 * place.effect:+.1f} % meanwhile"
