"""Bandwidth falls with message size and does not come back.

What it checks
    The curve of busbw over size: a fall below 75 % of the peak that stays to the largest size is a collapse (warning below
    half of the peak, else info); a dip that recovers is a switch of algorithm or protocol (info).

Why it matters
    A collapse at large messages is loss, back-pressure or a saturated PCIe path: training's large buckets live there.

What to do
    Check discards, pause frames and PFC/ECN settings (RoCE), wait counters (InfiniBand), PCIe width and IOMMU; compare
    with the same sweep off-hours.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from gdiag.analyzers.alike import Case, grouped
from gdiag.measures.bandwidth import Sweep
from gdiag.measures.bandwidth_curves import shape, shapes
from gdiag.measures.run import RunView
from gdiag.model import Finding, Measure, Severity
from gdiag.reference.sizes import size_text

CODE = "GD703"
NAME = "bandwidth-collapse"
NEEDS: tuple[str, ...] = ("collectives.busbw",)


def analyze(run: RunView, *, dip: float = 0.75, collapse: float = 0.5) -> list[Finding]:
    """dip: share of the envelope below which a size counts as low. collapse: share of the peak that is a warning."""
    return grouped(_cases(run, dip, collapse))


def _cases(run: RunView, dip: float, collapse: float) -> Iterator[Case]:
    for sweep in run.sweeps:
        seen, at = shapes(sweep.table, dip), sweep.number
        if sweep.n == 1 or not (seen["collapse_size"][at] or seen["dip_size"][at]):
            continue
        falls = bool(seen["collapse_size"][at])
        share = float(seen["collapse_share" if falls else "dip_share"][at])
        yield sweep, (falls, falls and share < collapse), -share, partial(_finding, run, sweep, dip, collapse)


def _finding(run: RunView, sweep: Sweep, dip: float, collapse: float) -> Finding:
    curve = shape(sweep, dip)
    name = sweep.collective or "the collective"
    if curve.collapse_size is not None:
        severity = Severity.WARNING if curve.collapse_share < collapse else Severity.INFO
        text = (
            f"{name} falls from {sweep.peak:.1f} GB/s at {size_text(curve.peak_size)} to {curve.collapse_share:.0%} of it from "
            f"{size_text(curve.collapse_size)} on and does not recover"
        )
        evidence = (Measure("share_of_peak", round(curve.collapse_share, 3), "", collapse),
                    Measure("size", curve.collapse_size, "B"), Measure("recovered", value=False))  # fmt: skip
        return Finding(CODE, NAME, severity, text, run.where(sweep.place(size=curve.collapse_size)), evidence)
    assert curve.dip_size is not None
    text = f"{name} dips to {curve.dip_share:.0%} at {size_text(curve.dip_size)} and recovers, as a switch of algorithm does"
    evidence = (Measure("share_of_peak", round(curve.dip_share, 3), "", dip), Measure("size", curve.dip_size, "B"),
                Measure("recovered", value=True))  # fmt: skip
    return Finding(CODE, NAME, Severity.INFO, text, run.where(sweep.place(size=curve.dip_size)), evidence)
