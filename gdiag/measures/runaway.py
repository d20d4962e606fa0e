"""A curve that leaves by orders of magnitude and never comes back.

A level that follows the curve follows it away as well, and noise measured over a run that was lost half-way is that of the
loss of everything: what grows from row to row to the end is found by its size alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from gdiag.measures.baseline import Floats, running_median

AWAY: Final = 10.0
"""Times the largest of the first quarter, smoothed, above which the end must lie: no loss that is learned ends there."""
SMOOTH_ROWS: Final = 5
LEAST_ROWS: Final = 20
END: Final = 50
"""The last of so many parts of the curve, five rows at least, is its end."""


@dataclass(frozen=True, slots=True)
class Runaway:
    """Where a curve left for good."""

    onset: int
    """First row after the last one at or below the level of the first quarter."""
    level: float
    """Median of the rows before it."""
    noise: float
    """Robust standard deviation of those rows from row to row."""
    end: float
    """Median of the last rows."""


def runaway(value: Floats) -> Runaway | None:
    """Where `value`, (n,), finite, leaves for good; None where it does not, or below 20 rows."""
    rows = len(value)
    if rows < LEAST_ROWS:
        return None
    smooth = running_median(value, SMOOTH_ROWS, centre=True)
    first = smooth[: max(SMOOTH_ROWS, rows // 4)]
    last = max(SMOOTH_ROWS, rows // END)
    if first.max() <= 0 or smooth[-last:].min() < AWAY * first.max():
        return None
    onset = int(np.flatnonzero(np.minimum(smooth, value) <= np.median(first))[-1]) + 1
    before = value[:onset]
    noise = 1.4826 * float(np.median(np.abs(np.diff(before)))) / np.sqrt(2) if onset > 2 else 0.0
    return Runaway(onset, float(np.median(before[-50:])), noise, float(np.median(value[-last:])))
