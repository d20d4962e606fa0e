"""Step time follows the slowest GPU's clock.

What it checks
    Medians of step time against the lowest mean clock of all loaded GPUs at the same moments: rank correlation with the
    trend in time taken out, and a 95 % interval from a block bootstrap. It is a note when the correlation is at least
    `strength`, the whole interval lies below zero and the clock moved by at least `moved`.

Why it matters
    It tells a throttled GPU that costs time from one that throttles in the shadow of something slower.

What to do
    Mend what throttles when the correlation is strong; look elsewhere first when throttling shows no effect on step time.
"""

from __future__ import annotations

from gdiag.measures.run import RunView
from gdiag.model import Finding, Measure, Severity

CODE = "GD607"
NAME = "throttling-effect"
NEEDS: tuple[str, ...] = ("gpus.clock_sm", "gpus.time", "steps.step_time|steps.time", "steps.time")


def analyze(run: RunView, *, moved: float = 0.02, strength: float = 0.3) -> list[Finding]:
    found = run.coupling
    if found is None or run.telemetry is None or found.clock_range < moved:
        return []
    if found.high >= 0 or found.correlation > -strength:
        return []
    events = [e for kind in ("thermal", "power brake", "hardware slowdown") for e in run.telemetry.health.events(kind)]
    start, end = (min(e.start for e in events), max(e.end for e in events)) if events else run.telemetry.health.span
    place = run.placed(start, end)
    if place is None:
        return []
    return [
        Finding(
            CODE, NAME, Severity.INFO,
            f"step time follows the slowest GPU's clock: rank correlation {found.correlation:.2f} "
            f"(95 % {found.low:.2f} to {found.high:.2f}) over {found.moments} moments",
            run.where(step=place.step, last_step=place.last_step, time=place.time, last_time=place.last_time),
            (
                Measure("clock_correlation", round(found.correlation, 3), "", 0.0), Measure("interval_low", round(found.low, 3)),
                Measure("interval_high", round(found.high, 3)), Measure("moments", found.moments),
                Measure("clock_range", round(100 * found.clock_range, 2), "%", 100 * moved),
            ),
        )
    ]  # fmt: skip
