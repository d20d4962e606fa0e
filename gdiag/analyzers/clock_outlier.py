"""A GPU runs at lower clocks than its peers at the same moments and reports no reason.

What it checks
    Mean SM clock under load per moment against the median of at least three peers of the same model; below `ratio` of it
    in at least `share` of the moments, with no thermal, power or brake reason in them. Where no reasons are logged and the
    GPU is far hotter than its peers at those moments, it is GD601. Where no reasons are logged, clocks that fall below their
    own earlier level under load, with neither temperature nor power at its limit: a note that says which column would tell why.

Why it matters
    One slow GPU slows the whole job. Locked application clocks, a lower power state and a bad card look like this.

What to do
    Compare `nvidia-smi -q -d CLOCK,PERFORMANCE` with a peer; reset locked clocks (`nvidia-smi -rgc`), check that the
    same driver settings hold on all nodes, run the vendor's diagnostics when it stays.
"""

from __future__ import annotations

from collections.abc import Sequence

from gdiag.analyzers import gpu_place
from gdiag.measures import gpu_outliers
from gdiag.measures.clock_drops import Drop
from gdiag.measures.gpu_health import Unit
from gdiag.measures.run import RunView
from gdiag.model import Finding, Measure, Severity

CODE = "GD604"
NAME = "clock-outlier"
NEEDS: tuple[str, ...] = ("gpus.clock_sm",)


def analyze(run: RunView, *, ratio: float = 0.95, share: float = 0.2) -> list[Finding]:
    view = run.telemetry
    if view is None:
        return []
    found: list[Finding] = []
    told: set[Unit] = set()
    for outlier in gpu_outliers.clock_outliers(view.health.partial, ratio=ratio, share=share):
        if outlier.throttled:  # GD601 tells it by the heat
            continue
        where, place = gpu_place.located(run, [outlier.unit], outlier.start, outlier.end)
        evidence = [
            Measure("clock", round(outlier.clock, 1), "MHz"),
            Measure("clock_peers", round(outlier.peers, 1), "MHz"),
            Measure("ratio", round(outlier.ratio, 4), "", ratio),
            Measure("slow_share", round(100 * outlier.share, 1), "%", 100 * share),
        ]
        if place.effect is not None:
            evidence.append(Measure("step_time_effect", round(100 * place.effect, 2), "%"))
        told.add(outlier.unit)
        found.append(
            Finding(
                CODE,
                NAME,
                Severity.WARNING,
                f"{gpu_place.named([outlier.unit], 0)} runs at {outlier.clock:.0f} MHz where its peers run at {outlier.peers:.0f} MHz, "
                f"in {100 * outlier.share:.0f} % of the moments under load, and reports no reason",
                where,
                tuple(evidence),
            )
        )
    return found + [_untold(run, d) for d in run.clock_drops if d.why == "unknown" and not told & set(d.units)]


def _untold(run: RunView, drop: Drop) -> Finding:
    """Clocks below their own past, and what would tell why."""
    view = run.telemetry
    assert view is not None
    where, place = gpu_place.located(run, drop.units, drop.start, drop.end)
    text = (
        f"{gpu_place.named(drop.units, view.health.units.height)} run{'s' if len(drop.units) == 1 else ''} at {drop.clock:.0f} MHz under load, "
        f"earlier at {drop.clock_before:.0f} MHz: heat, a power limit or locked clocks cannot be told apart without {_listed(drop.lacking)}"
    )
    evidence = (*gpu_place.of_drop(drop, place), Measure("lacking", _listed(drop.lacking)))
    return Finding(CODE, NAME, Severity.INFO, f"{text}{gpu_place.effect(place)}", where, evidence)


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
