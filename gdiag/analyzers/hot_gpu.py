"""GPUs are hot, or hotter than their peers, and still run at full clocks.

What it checks
    Mean temperature under load within `margin` °C of the model's operating limit (from the data file; 80 °C where the model
    is not known), or `above` °C hotter than the median of at least three peers, on GPUs that no thermal reason slowed.

Why it matters
    It does not slow the run. It is little reserve: the next warm afternoon or failed fan makes it GD601.

What to do
    Note it; look at the fans and the airflow of the GPUs named at the next maintenance.
"""

from __future__ import annotations

from gdiag.analyzers import gpu_place
from gdiag.measures import gpu_outliers
from gdiag.measures.gpu_health import Unit
from gdiag.measures.run import RunView
from gdiag.model import Finding, Measure, Severity

CODE = "GD605"
NAME = "hot-gpu"
NEEDS: tuple[str, ...] = ("gpus.temperature",)

UNKNOWN_LIMIT = 87.0
"""Operating limit assumed for a model that the data file does not list: 80 °C is remarkable then."""


def analyze(run: RunView, *, margin: float = 7.0, above: float = 10.0) -> list[Finding]:
    view = run.telemetry
    if view is None or not view.health.busy:
        return []
    outliers = gpu_outliers.heat_outliers(view.health.partial, degrees=above)
    throttled = {o.unit for o in gpu_outliers.clock_outliers(view.health.partial) if o.throttled}
    hot: list[tuple[Unit, float, float]] = []
    for row in view.health.per_gpu.iter_rows(named=True):
        unit: Unit = (row["host"], row["gpu"])
        if row["temperature"] is None or (row["thermal"] or 0) > 0 or unit in throttled:
            continue
        limit = row["slowdown"] or UNKNOWN_LIMIT
        if row["busy"] > 0 and (row["temperature"] >= limit - margin or unit in outliers):
            hot.append((unit, row["temperature"], limit))
    if not hot:
        return []
    units = [unit for unit, _, _ in hot]
    start, end = view.health.span
    where, _ = gpu_place.located(run, units, start, end)
    hottest = max(t for _, t, _ in hot)
    worst = max((outliers.get(u, 0.0) for u in units), default=0.0)
    beyond = f", up to {worst:.0f} °C above the median of the peers" if worst >= above else ""
    evidence = [
        Measure("temperature", round(hottest, 1), "°C", min(limit for _, _, limit in hot)),
        Measure("gpus", len(units)), Measure("gpus_total", view.health.units.height), Measure("above_peers", round(worst, 1), "°C", above),
    ]  # fmt: skip
    return [
        Finding(
            CODE, NAME, Severity.INFO,
            f"{gpu_place.named(units, view.health.units.height)} run{'s' if len(units) == 1 else ''} hot, {hottest:.0f} °C on average{beyond}, "
            "and without thermal throttling",
            where, tuple(evidence),
        )
    ]  # fmt: skip
