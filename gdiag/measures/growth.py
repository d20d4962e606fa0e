"""Levels that grow and stay: attention logits, output logits, parameter norms."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gdiag.measures.layers import Floats
from gdiag.measures.parameters import trend


@dataclass(frozen=True, slots=True)
class Growth:
    """A series that rose above a level and stays there."""

    row: int
    """Row since which it stays above."""
    start: float
    """Lowest median of a tenth before that."""
    last: float
    """Median of the last tenth."""
    factor: float
    z: float
    """Mann–Kendall score of the logarithm from the lowest tenth on."""


def sustained_growth(value: Floats, level: float, factor: float, rows: int = 5) -> Growth | None:
    """Growth of a positive series above `level` and to `factor` times its lowest tenth, there to the end.

    None when it ends below either, or has fewer than 20 finite rows.
    """
    good = np.flatnonzero(np.isfinite(value) & (value > 0))
    if len(good) < 20:
        return None
    series = value[good]
    tenths = [float(np.median(part)) for part in np.array_split(series, 10)]
    last, low = tenths[-1], min(tenths[:-1])
    if last < level or last < factor * low:
        return None
    bound = max(level, np.sqrt(factor) * low)
    middle = np.median(np.lib.stride_tricks.sliding_window_view(series, rows), axis=1)
    below = np.flatnonzero(middle < bound)
    row = int(below[-1]) + rows // 2 + 1 if len(below) else 0
    lowest = int(np.argmin(tenths[:-1])) * len(series) // 10
    found = trend(np.log(series[lowest:]))
    return Growth(int(good[min(row, len(good) - 1)]), low, last, last / low, found.z if found else 0.0)


def growth_onset(logs: Floats, blocks: int = 40) -> int:
    """Row since which a logarithm grows at a third or more of its final rate, to the end."""
    good = np.flatnonzero(np.isfinite(logs))
    parts = np.array_split(good, min(blocks, max(2, len(good) // 3)))
    level = np.array([np.median(logs[p]) for p in parts])
    rate = np.diff(level)
    final = float(np.median(rate[-max(2, len(rate) // 5) :]))
    slow = np.flatnonzero(rate < final / 3)
    return int(parts[int(slow[-1]) + 1][0]) if len(slow) else int(good[0])
