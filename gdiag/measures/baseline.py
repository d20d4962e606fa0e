"""Robust running level and noise of a curve: what a value is held against.

Rolling medians over dense arrays (polars slows down fourfold on a single null and sorts NaN as largest, so callers pass
finite values only).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

Floats = NDArray[np.float64]

MAD_TO_SIGMA = 1.4826
"""Standard deviation of a normal variable over its median absolute deviation."""
MEDIAN_ERROR = 1.2533
"""Standard error of a median over that of a mean, for normal noise (√(π/2))."""


@dataclass(frozen=True, slots=True)
class Baseline:
    """Level and noise at every row, from rows before it only."""

    level: Floats
    scale: Floats
    """Robust standard deviation around the level; > 0 wherever the curve varies at all."""
    window: int
    """Rows the level looks back."""
    noise: float
    """Median of `scale`."""


def window_rows(rows: int) -> int:
    """Look-back window: a twelfth of the curve, 16 to 200 rows (a fixed window misses spikes in short logs)."""
    return int(np.clip(rows / 12, 16, 200))


def warmup_rows(rows: int) -> int:
    """Rows at the start without a usable level: a twentieth, 12 to 200, and never over a fifth."""
    return int(min(200, max(12, rows // 20), max(4, rows // 5)))


def running_median(value: Floats, window: int, *, centre: bool = False) -> Floats:
    """Median over `window` rows: trailing and including the row, or centred; shorter at the ends."""
    return pl.Series(value).rolling_median(window, min_samples=1, center=centre).to_numpy()


def resolution(value: Floats) -> float:
    """The step to which values are rounded, 0 when they are not (fewer than half of them repeat)."""
    sample = value if len(value) <= 20_000 else value[:: len(value) // 20_000 + 1]
    distinct = np.unique(sample)
    if len(distinct) < 2 or len(distinct) > 0.5 * len(sample):
        return 0.0
    gaps = np.diff(distinct)
    return float(np.quantile(gaps[gaps > 0], 0.1))


def mad_sigma(value: Floats) -> float:
    """Robust standard deviation around the median; 0 for an empty or constant array."""
    return MAD_TO_SIGMA * float(np.median(np.abs(value - np.median(value)))) if len(value) else 0.0


def row_noise(value: Floats) -> float:
    """Robust standard deviation of the noise of single rows, from their differences: a level that moves does not count."""
    return mad_sigma(np.diff(value)) / float(np.sqrt(2))


def baseline(value: Floats, masked: NDArray[np.bool_] | None = None, *, window: int | None = None) -> Baseline:
    """Level and noise of `value` (finite, in order), blind to `masked` rows.

    The level is the median of the newer half of the window plus half of its difference to the older half while that
    is falling, yet not below the newest quarter: it follows a learning curve down, does not run after a spike and does
    not fall on after a step down. The row itself is excluded.
    """
    rows = len(value)
    window = window or window_rows(rows)
    half = max(4, window // 2)
    seen = np.arange(rows) if masked is None else np.flatnonzero(~masked)
    if len(seen) < 8:
        seen = np.arange(rows)
    dense = value[seen]
    newer = _shifted(running_median(dense, half), 1)
    older = _shifted(newer, half)
    newest = _shifted(running_median(dense, max(2, half // 2)), 1)
    level = np.maximum(newer + 0.5 * np.minimum(0.0, newer - older), np.minimum(newer, newest))
    deviation = np.abs(dense - level)
    spread = MAD_TO_SIGMA * running_median(deviation, 2 * window)
    start = min(warmup_rows(rows), len(dense) // 2)
    typical = MAD_TO_SIGMA * float(np.median(deviation[start:]))
    floor = max(0.3 * typical, 0.3 * resolution(value), 1e-9 * float(np.median(np.abs(dense))), 1e-300)
    scale = np.maximum(_shifted(spread, 1), floor)
    scale[:start] = np.maximum(scale[:start], typical)
    if len(seen) < rows:
        at = np.maximum(np.searchsorted(seen, np.arange(rows), side="right") - 1, 0)
        after = np.concatenate([[True], np.diff(at) > 0])
        level = np.where(after, level[at], _next_level(newer, at))
        scale = scale[at]
    return Baseline(level, scale, window, float(np.median(scale[start:])) if rows > start else typical)


def _shifted(value: Floats, by: int) -> Floats:
    """Values `by` rows earlier; the first value stands where there are none."""
    if by >= len(value):
        return np.full_like(value, value[0])
    return np.concatenate([np.full(by, value[0]), value[:-by]])


def _next_level(newer: Floats, at: NDArray[np.int64]) -> Floats:
    """Level for masked rows: the newer-half median as of the last row that is not masked."""
    return newer[np.minimum(at + 1, len(newer) - 1)]
