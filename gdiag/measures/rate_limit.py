"""What one log can tell of a rate that costs without harm: a loss above its start, and one that waits for the rate to fall.

Neither proves that another rate would have ended lower: a network may leave its start slowly, and a schedule may be meant to
anneal. They say what to try, and against which run to hold it.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from gdiag.measures.baseline import MEDIAN_ERROR, row_noise, running_median
from gdiag.measures.curves import Curve, Points
from gdiag.measures.schedule import Schedule

SMOOTH = 5
STANDS = 0.3
"""Fall over the last half of the rows at the peak, over that from there on, up to which the loss stands still there."""
FALLS = 0.03
"""Fall from there on, as the rate falls, over the whole gain, from which it is worth telling."""
AT_PEAK, HIGH_ROWS, LOW_ROWS = 0.9, 40, 20
ERRORS = 4.0
"""Standard errors that the fall must reach."""
ABOVE_SHARE, ABOVE_ROWS, ABOVE = 0.01, 20, 0.02
"""A loss above its first rows by this share for fewer rows, or a smaller part of the run, is what first batches do."""

WORSE_SHARE, WORSE_ROWS, WORSE = 0.05, 5, 1.1
"""First updates: this share of the rows, so many at least; and how many times the first loss the largest of them must be."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A loss that stands still at the peak rate and falls with it."""

    step: int
    """First row of the stretch in which it stands."""
    last_step: int
    """Last row at the peak rate."""
    level: float
    gain: float
    """Fall of the loss from there on."""


def waiting(schedule: Schedule, lr: Points, loss: Curve) -> Waiting | None:
    """Whether the loss stands still over the last half of a held rate and falls in the shorter decay that follows.

    None without a hold: where a rate falls from its peak on, the loss of any run falls with it.
    """
    if schedule.shape != "wsd" or schedule.jumps or len(loss.nonfinite) or len(lr) < 3:
        return None
    begin = schedule.warmup_end if schedule.warmup_end is not None else schedule.first_step
    share = np.interp(loss.step, lr.step, lr.value) / schedule.peak
    peak = np.flatnonzero((loss.step >= begin) & (share >= AT_PEAK))
    if len(peak) < HIGH_ROWS or len(loss) - 1 - int(peak[-1]) < LOW_ROWS:
        return None
    held, after = loss.value[peak[len(peak) // 2 :]], loss.value[peak[-1] + 1 :]
    if len(after) > len(held):
        return None
    quarter, late = len(held) // 4, max(LOW_ROWS // 4, len(after) // 4)
    level, end = float(np.median(held[-quarter:])), float(np.median(after[-late:]))
    fall, gain = float(np.median(held[:quarter])) - level, float(np.median(loss.value[:5])) - end
    error = MEDIAN_ERROR * row_noise(held) * sqrt(2 / quarter)
    drop = level - end
    if gain <= 0 or drop < max(FALLS * gain, ERRORS * error) or fall + error > STANDS * drop:
        return None
    return Waiting(int(loss.step[peak[len(peak) // 2]]), int(loss.step[peak[-1]]), level, drop)


def worse_than_start(loss: Curve) -> tuple[int, float] | None:
    """(step, loss) of the largest of the first updates, a twentieth of the rows, where it lies well above the first row.

    A model from scratch guesses in its first row; updates that make it worse than that are too large for it.
    """
    rows = loss.value[: max(WORSE_ROWS, int(WORSE_SHARE * len(loss)))]
    if len(loss) < 4 * WORSE_ROWS or rows[0] <= 0:
        return None
    worst = int(np.argmax(rows))
    above = float(rows[worst] - rows[0])
    far = above > (WORSE - 1) * rows[0] and above > ERRORS * row_noise(loss.value[len(rows) :])
    return (int(loss.step[worst]), float(rows[worst])) if far else None


def above_start(loss: Curve) -> int | None:
    """Last step up to which the loss lies above its first rows, None where that is as brief as first batches are."""
    if len(loss) < 4 * ABOVE_ROWS:
        return None
    smooth = running_median(loss.value, SMOOTH, centre=True)
    start = float(np.median(loss.value[:3]))
    below = np.flatnonzero(smooth < start)
    rows = int(below[below >= SMOOTH][0]) if (below >= SMOOTH).any() else len(loss)
    high = smooth[:rows] > start + ABOVE * abs(start)
    if rows < max(ABOVE_ROWS, ABOVE_SHARE * len(loss)) or rows == len(loss) or high.mean() < 0.5:
        return None
    return int(loss.step[rows - 1])
