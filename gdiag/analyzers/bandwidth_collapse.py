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
from gdiag.measures.bandwidth_curves import shapes
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
        falls = bool(seen["collapse_size"][at])
        kind = "collapse" if falls else "dip"
        size, share = int(seen[f"{kind}_size"][at]), float(seen[f"{kind}_share"][at])
        if sweep.n == 1 or not size:
            continue
        if falls:
            make = partial(_fall, run, sweep, int(seen["peak_size"][at]), size, share, collapse)
        else:
            make = partial(_dip, run, sweep, size, share, dip)
        yield sweep, (falls, falls and share < collapse), -share, make


def _fall(run: RunView, sweep: Sweep, peak_size: int, size: int, share: float, collapse: float) -> Finding:
    severity = Severity.WARNING if share < collapse else Severity.INFO
    text = (
        f"{_name(sweep)} falls from {sweep.peak:.1f} GB/s at {size_text(peak_size)} to {share:.0%} of it from "
        f"{size_text(size)} on and does not recover"
    )
    return _finding(run, sweep, severity, text, size, share, collapse, recovered=False)


def _dip(run: RunView, sweep: Sweep, size: int, share: float, dip: float) -> Finding:
    text = f"{_name(sweep)} dips to {share:.0%} of the bandwidth around it at {size_text(size)} and recovers, as a switch of algorithm does"
    return _finding(run, sweep, Severity.INFO, text, size, share, dip, recovered=True)


def _name(sweep: Sweep) -> str:
    return sweep.collective or "the collective"


def _finding(
    run: RunView, sweep: Sweep, severity: Severity, text: str, size: int, share: float, limit: float, *, recovered: bool
) -> Finding:
    evidence = (Measure("share_of_peak", round(share, 3), "", limit), Measure("size", size, "B"),
                Measure("recovered", value=recovered))  # fmt: skip
    return Finding(CODE, NAME, severity, text, run.where(sweep.place(size=size)), evidence)
