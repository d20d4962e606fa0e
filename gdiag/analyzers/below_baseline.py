"""A benchmark is slower than its baseline.

What it checks
    busbw size by size, from 1 MiB on, against a baseline of the same collective (`gdiag nccl --baseline FILE`): another
    output, or the small file that `--baseline-save` writes.

Why it matters
    Contention shows only under load: a fabric that is healthy off-hours and slow beside training is shared, not broken.

What to do
    Repeat both at the same hour on the same nodes. A shortfall under load only: isolate storage and management traffic,
    lower the data-parallel degree across the oversubscribed tier. A shortfall at any hour: cables, cards, firmware.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

from gdiag.analyzers.alike import Case, grouped
from gdiag.measures.bandwidth import Sweep
from gdiag.measures.bandwidth_compare import Held, Shortfall
from gdiag.measures.run import RunView
from gdiag.model import Finding, Measure, Severity
from gdiag.reference.sizes import size_text

CODE = "GD708"
NAME = "below-baseline"
NEEDS: tuple[str, ...] = ("collectives.busbw", "baselines.busbw")
_HARMED: Final = 2
"""Sizes that must fall short before it is more than a blip."""


def analyze(run: RunView, *, tolerance: float = 0.05, warn: float = 0.1) -> list[Finding]:
    """tolerance: median shortfall that is info. warn: median shortfall that is a warning; shares."""
    return grouped(_cases(run, tolerance, warn))


def _cases(run: RunView, tolerance: float, warn: float) -> Iterator[Case]:
    held = Held(run.baselines)
    for sweep in run.sweeps:
        seen = held.against(sweep)
        if seen is None or seen.median >= 1 - tolerance:
            continue
        if sum(share < 1 - tolerance for share in seen.shares) >= _HARMED:
            far = seen.median < 1 - warn
            yield sweep, (far,), -seen.median, partial(_finding, run, sweep, seen, tolerance, warn)


def _finding(run: RunView, sweep: Sweep, seen: Shortfall, tolerance: float, warn: float) -> Finding:
    severity = Severity.WARNING if seen.median < 1 - warn else Severity.INFO
    size, share = seen.worst
    text = (
        f"{sweep.collective or 'the collective'} reaches {seen.median:.0%} of the baseline (median of {len(seen.sizes)} "
        f"sizes), at worst {share:.0%} at {size_text(size)}"
    )
    evidence = (
        Measure("ratio", round(seen.median, 3), "", 1 - warn),
        Measure("worst_ratio", round(share, 3), "", 1 - tolerance),
        Measure("short_sizes", sum(share < 1 - tolerance for share in seen.shares), ""),
    )
    return Finding(CODE, NAME, severity, text, run.where(sweep.place(size=size)), evidence)
