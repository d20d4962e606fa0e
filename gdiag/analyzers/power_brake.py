"""Hardware cuts the clocks for power: the brake signal of the supply or the rack, or too high a draw.

What it checks
    Samples with the power-brake reason (0x80), and hardware slowdown (0x8) on GPUs that are not hot. At least three
    samples and `share` of the load make it a warning.

Why it matters
    Clocks are halved or worse for as long as it lasts. It is not the GPU's heat and not its limit: something upstream
    asks for it (PSU failure or redundancy loss, PDU or rack budget, a BMC policy).

What to do
    Read the BMC's event log and the PDU's load at the same minutes, check the supplies of the hosts named, spread the
    load of the rack; drain hosts that repeat it.
"""

from __future__ import annotations

from gdiag.analyzers import gpu_place
from gdiag.measures.gpu_health import Event
from gdiag.measures.run import RunView
from gdiag.model import Finding, Measure, Severity

CODE = "GD603"
NAME = "power-brake"
NEEDS: tuple[str, ...] = ("gpus.reasons",)


def analyze(run: RunView, *, share: float = 0.005) -> list[Finding]:
    view = run.telemetry
    if view is None:
        return []
    braked = [_finding(run, event, share) for event in view.health.events("power brake")]
    return braked + [_finding(run, event, share) for event in view.health.events("hardware slowdown")]


def _finding(run: RunView, event: Event, share: float) -> Finding:
    view = run.telemetry
    assert view is not None
    where, place = gpu_place.located(run, event.gpus, event.start, event.end)
    what = (
        "the power brake cuts the clocks of"
        if event.kind == "power brake"
        else "hardware slowdown without heat cuts the clocks of"
    )
    clock = ""
    if event.clock_inside is not None and event.clock_max is not None:
        clock = f" to {event.clock_inside:.0f} of {event.clock_max:.0f} MHz"
    return Finding(
        CODE, NAME, Severity.WARNING if event.of_all >= share else Severity.INFO,
        f"{what} {gpu_place.named(event.gpus, view.health.units.height)}{clock} in {100 * event.of_all:.1f} % of the loaded "
        f"samples{gpu_place.effect(place)}",
        where, (*gpu_place.figures(run, event, place, share), Measure("reason", event.kind)),
    )  # fmt: skip
