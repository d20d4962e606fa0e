"""Memory use climbs through the run.

What it checks
    Memory per step (or the GPU's used memory in the telemetry) that climbs through the second half of the run in many small
    steps, by Mann-Kendall, and by at least `share` of the card. Allocators that fill up early and stay are not reported.

Why it matters
    A leak or a fragmenting allocator ends in an out-of-memory error; on the way there allocation retries make steps slow.

What to do
    Look for tensors kept across steps (losses appended with their graph, growing caches), for sequence lengths that
    grow, and at the allocator's reserved minus allocated memory; PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True helps
    against fragmentation.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from gdiag.measures import memory
from gdiag.measures.run import RunView
from gdiag.model import Finding, Location, Measure, Severity

CODE = "GD506"
NAME = "memory-growth"
NEEDS: tuple[str, ...] = ("steps.memory|gpus.memory_used",)

GIB = 2.0**30


def analyze(run: RunView, *, share: float = 0.05, full: float = 0.95) -> list[Finding]:
    """share: least growth, of the card (of the use before, where its size is not logged). full: use that is called near the end."""
    total = _total(run)
    points = run.series("memory").finite
    if len(points):
        found = memory.growth(points.value)
        if found is None:
            return []
        stamps = run.series("time")
        first, last = int(points.step[found.start]), int(points.step[found.end])
        where = run.where(
            points.row(found.start), step=first, last_step=last, time=stamps.at(first), last_time=stamps.at(last)
        )
        rate = memory.per_step_rate(found, points.step) / GIB * 1000
        return _finding(found, where, total, share, full, [Measure("rate", round(rate, 4), "GiB/1000 steps")])
    return _of_gpus(run, total, share, full)


def _of_gpus(run: RunView, total: float | None, share: float, full: float) -> list[Finding]:
    view = run.telemetry
    if view is None:
        return []
    bins = view.health.partial.bins.filter((pl.col("memory_rows") > 0) & (pl.col("busy") > 0))
    used = (
        bins.group_by("bin")
        .agg((pl.col("memory_sum").sum() / pl.col("memory_rows").sum()).alias("used"), pl.col("first_time").min())
        .sort("bin")
    )
    found = memory.growth(used["used"].to_numpy()) if used.height else None
    if found is None:
        return []
    place = run.placed(float(used["first_time"][found.start]), float(used["first_time"][found.end]))
    if place is None:
        return []
    where = run.where(step=place.step, last_step=place.last_step, time=place.time, last_time=place.last_time)
    return _finding(found, where, total, share, full, [])


def _total(run: RunView) -> float | None:
    if "memory_total" not in run.gpus.columns or not run.gpus["memory_total"].count():
        return None
    return float(np.min(run.gpus["memory_total"].drop_nulls().to_numpy()))


def _finding(
    found: memory.Growth, where: Location, total: float | None, share: float, full: float, more: list[Measure]
) -> list[Finding]:
    grown = (found.after - found.before) / (total or found.before)
    if grown < share:
        return []
    near = total is not None and found.after >= full * total
    of = f" of {total / GIB:.1f} GiB" if total else ""
    # Without the card's size a climb is a trend; a tenth more than before is worth a warning.
    heavy = total is not None or grown >= 2 * share
    evidence = [
        Measure("memory_before", round(found.before / GIB, 3), "GiB"), Measure("memory_after", round(found.after / GIB, 3), "GiB", round(total / GIB, 2) if total else None),
        Measure("growth", round(100 * grown, 2), "%", 100 * share), Measure("z", round(found.z, 1), "", 4.0), Measure("near_full", near), *more,
    ]  # fmt: skip
    return [
        Finding(
            CODE, NAME, Severity.WARNING if heavy or near else Severity.INFO,
            f"memory use climbs from {found.before / GIB:.2f} to {found.after / GIB:.2f} GiB{of} and is still climbing at the end",
            where, tuple(evidence),
        )
    ]  # fmt: skip
