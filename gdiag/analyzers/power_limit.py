"""GPUs run below their clocks because of a power limit that is lower than the board's own.

What it checks
    Loaded samples with the software power cap (0x4), or at 97 % of the limit where no reason was logged, in at least
    `share` of the load, with clocks below 97 % of the highest, and a limit below the default one (from the log, else from
    the model's data, else from what boards with that highest clock have at least) or power well below the limit shown. A
    cap at full power under the default limit is how GPUs work and is not reported. Where no reasons are logged, clocks that
    fall below their own earlier level while power stands at a limit below the default, or below the earlier one where no
    default is logged.

Why it matters
    A lowered limit (a policy, a forgotten test, a BMC or rack cap) costs clock on every step, and different limits inside
    one job make stragglers.

What to do
    Compare `nvidia-smi -q -d POWER` of all nodes; restore the default with `nvidia-smi -pl`, or accept the clock it costs.
"""

from __future__ import annotations

from gdiag.analyzers import gpu_place
from gdiag.measures.clock_drops import Drop
from gdiag.measures.gpu_health import Event, Unit
from gdiag.measures.run import RunView
from gdiag.measures.telemetry import Telemetry
from gdiag.model import Finding, Measure, Severity
from gdiag.reference import gpus as reference

CODE = "GD602"
NAME = "power-limit"
NEEDS: tuple[str, ...] = ("gpus.reasons|gpus.power_limit", "gpus.power", "gpus.clock_sm")


def analyze(run: RunView, *, share: float = 0.2, lowered: float = 0.95, clock: float = 0.97) -> list[Finding]:
    view = run.telemetry
    if view is None:
        return []
    found: list[Finding] = []
    told: set[Unit] = set()
    for event in view.health.events("power cap"):
        known = event.default_limit or _default(view, event)
        default = known or _by_clock(event)
        slow = (
            event.clock_inside is not None
            and event.clock_max is not None
            and event.clock_inside < clock * event.clock_max
        )
        low_limit = default is not None and event.power_limit is not None and event.power_limit < lowered * default
        hidden = event.power is not None and event.power_limit is not None and event.power < 0.9 * event.power_limit
        if event.of_all < share or not slow or not (low_limit or hidden):
            continue
        told |= set(event.gpus)
        found.append(_finding(run, event, default, low_limit, share, named=known is not None))
    fallen = (d for d in run.clock_drops if d.why == "power limit" and d.share >= share and not told & set(d.units))
    return found + [_by_past(run, view, drop) for drop in fallen]


def _by_past(run: RunView, view: Telemetry, drop: Drop) -> Finding:
    """GPUs whose clocks fell at a lowered limit, no reason being logged."""
    where, place = gpu_place.located(run, drop.units, drop.start, drop.end)
    usual, by_default = drop.usual_limit, "the default " if drop.default_limit else ""
    lowered = f" from {by_default}{usual:.0f} W" if usual else ""
    default = () if drop.default_limit is None else (Measure("default_power_limit", round(drop.default_limit, 2), "W"),)
    return Finding(
        CODE, NAME, Severity.WARNING,
        f"{gpu_place.named(drop.units, view.health.units.height)} run{'s' if len(drop.units) == 1 else ''} at a power limit lowered{lowered} to "
        f"{drop.power_limit:.0f} W: clocks fall from {drop.clock_before:.0f} to {drop.clock:.0f} MHz under load{gpu_place.effect(place)}",
        where, (*gpu_place.of_drop(drop, place), *default, Measure("limit_lowered", True)),
    )  # fmt: skip


def _by_clock(event: Event) -> float | None:
    """What a board with that highest clock has at least, where the log names no model."""
    if event.clock_max is None or event.power_limit is None:
        return None
    return reference.least_power(event.clock_max, event.power_limit)


def _default(view: Telemetry, event: Event) -> float | None:
    for row in view.health.units.iter_rows(named=True):
        if (row["host"], row["gpu"]) == event.gpus[0]:
            known = reference.gpu(row["model"])
            return known.power if known is not None else None
    return None


def _finding(
    run: RunView, event: Event, default: float | None, low_limit: bool, share: float, *, named: bool
) -> Finding:
    view = run.telemetry
    assert view is not None
    where, place = gpu_place.located(run, event.gpus, event.start, event.end)
    if low_limit:
        own = f"the board's own is {default:.0f} W" if named else f"boards of that clock have {default:.0f} W or more"
        why = f"under a limit of {event.power_limit:.0f} W where {own}"
    else:
        why = f"at {event.power:.0f} W, well below the limit of {event.power_limit:.0f} W that it reports"
    evidence = gpu_place.figures(run, event, place, share)
    loss = 1 - event.clock_inside / event.clock_max if event.clock_inside and event.clock_max else 0.0
    return Finding(
        CODE, NAME, Severity.WARNING,
        f"{gpu_place.named(event.gpus, view.health.units.height)} run{'s' if len(event.gpus) == 1 else ''} power-capped in "
        f"{100 * event.of_all:.0f} % of the loaded samples, {why}, {100 * loss:.0f} % below the highest clock{gpu_place.effect(place)}",
        where, (*evidence, Measure("limit_lowered", low_limit), Measure("clock_below_max", round(100 * loss, 2), "%")),
    )  # fmt: skip
