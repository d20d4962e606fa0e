"""Extracts of a few rows, as people paste them: too short for a scan, long enough for a rise that nobody overlooks."""

from __future__ import annotations

import numpy as np

from gdiag.measures.baseline import Floats, mad_sigma
from gdiag.measures.episodes import Episode

ROWS = (8, 16)
"""From 8 rows on; 16 rows are scanned."""
CLEAR_Z = 8.0
CLEAR_SHARE = 0.3


RANGE = {2: 1.13, 3: 1.69, 4: 2.06, 5: 2.33, 6: 2.53}
"""Expected range of so many values in standard deviations: the median deviation of three says little (Tippett 1925)."""


def _spread(before: Floats) -> float:
    """Standard deviation of a handful of rows by their range, the highest left out, which may rise already; else 0."""
    low = np.sort(before)[:-1]
    return float(np.ptp(low)) / RANGE[len(low)] if len(low) in RANGE else 0.0


def short_episodes(value: Floats) -> tuple[Episode, ...]:
    """The rise of an extract's peak over the rows before it: over eight of their deviations and 30 % of their level."""
    if not ROWS[0] <= len(value) < ROWS[1]:
        return ()
    peak = int(np.argmax(value))
    before = value[:peak]
    if peak < 3:
        return ()
    level = float(np.median(before))
    scale = max(mad_sigma(before), _spread(before), 0.01 * abs(level), 1e-12)
    excess = float(value[peak]) - level
    if excess < max(CLEAR_Z * scale, CLEAR_SHARE * abs(level)):
        return ()
    onset = peak
    while onset > 3 and value[onset - 1] > level + 4 * scale:
        onset -= 1
    rest = value[peak + 1 :]
    back = np.flatnonzero(rest < level + 0.15 * excess)
    recovery = peak + 1 + int(back[0]) if len(back) else None
    if recovery is not None and excess < CLEAR_Z * mad_sigma(np.concatenate((value[:onset], value[recovery:]))):
        return ()
    last = recovery - 1 if recovery is not None else len(value) - 1
    settled = float(np.median(rest[-3:])) - level if len(rest) else excess
    return (
        Episode(
            onset, peak, last, excess, excess / scale, excess / scale, level, recovery,
            (0.5, float(last - peak + 1)) if recovery is not None else None, settled, settled,
            level + settled,
        ),
    )  # fmt: skip
