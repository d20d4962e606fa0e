"""What the loss does with the learning rate it is given: progress that stops when the rate is gone, or never starts."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import log, sqrt

import numpy as np

from gdiag.measures.baseline import MEDIAN_ERROR, row_noise
from gdiag.measures.curves import Curve, Floats, Points
from gdiag.measures.schedule import Schedule

BLOCKS = 24
MOST_EXPECTED = 0.25
"""Share of the gain that the earlier descent promises, below which the loss counts as stopped."""

GONE_SHARE, SMOOTH_LEFT = 0.02, 0.35
"""A smooth curve at or below this share of its peak for at least this part of the run may have decayed early."""
IDLE_LEFT = 0.5
IDLE_SPENT = 0.05
"""A rest of half the run or more that holds a twentieth of its share of the learning rate teaches nothing (the last half
of a cosine holds a third of its share)."""


@dataclass(frozen=True, slots=True)
class Exhausted:
    """A learning rate that became a small share of its peak with a long part of the run to go."""

    step: int
    """First row at or below the share."""
    index: int
    """Its position in the learning-rate curve."""
    last_step: int
    share: float
    """Largest share of the peak from there on."""
    left: float
    """Share of the run from there on."""
    gain: float
    """Fall of the loss from there on [nat]."""
    expected: float
    """Fall that the descent before it promises, in log time [nat]."""
    error: float
    """Standard error of `gain` [nat]."""


def exhausted(schedule: Schedule, lr: Points, loss: Curve, *, share: float, left: float) -> Exhausted | None:
    """The place where the rate falls to `share` of its peak for good, when at least `left` of the run follows.

    None as well where the loss goes on falling at more than a quarter of the pace before (in log time), or where too
    few rows tell.
    """
    above = np.flatnonzero(lr.value > share * schedule.peak)
    if not len(above) or above[-1] + 1 >= len(lr):
        return None
    i = int(above[-1]) + 1
    first, at, last = int(lr.step[0]), int(lr.step[i]), int(lr.step[-1])
    rest = (last - at) / max(1, last - first)
    if rest < left or len(loss) < 40:
        return None
    elapsed = (loss.step - first + schedule.interval).astype(np.float64)
    turn = float(at - first + schedule.interval)
    risen = 0 if schedule.warmup_end is None else schedule.warmup_end - first
    before = (elapsed >= max(turn / 2, float(risen))) & (elapsed < turn)
    after = elapsed >= turn + 0.1 * (elapsed[-1] - turn)
    # A rate that is as good as zero for half a run needs no proof by a loss whose noise, or few rows, hide its descent.
    idle = rest >= IDLE_LEFT and _spent(lr, i) <= IDLE_SPENT * rest
    if before.sum() < (3 if idle else 8) or after.sum() < 12:
        return None
    slope, level = _descent(np.log(elapsed[before] / turn), loss.value[before])
    rows = loss.value[after]
    late = rows[len(rows) // 2 :]
    gain = level - float(np.median(late))
    error = MEDIAN_ERROR * row_noise(rows) * sqrt(1 / len(late) + 4 / before.sum())
    # In log time: the middle of the last half of the rest.
    expected = slope * log((turn + 0.75 * (elapsed[-1] - turn)) / turn)
    if expected < max(4 * error, 0.01 * level) and not idle:
        return None
    if gain > MOST_EXPECTED * expected + (2 * error if idle else 0.0):
        return None
    largest = float(lr.value[i:].max()) / schedule.peak
    return Exhausted(at, i, last, largest, rest, gain, expected, error)


def _spent(lr: Points, i: int) -> float:
    """Share of the learning rate times steps of the whole log that comes from row `i` on."""
    parts = 0.5 * (lr.value[1:] + lr.value[:-1]) * np.diff(lr.step)
    return float(parts[i:].sum() / max(float(parts.sum()), 1e-300))


def _descent(x: Floats, y: Floats) -> tuple[float, float]:
    """Fall per unit of x, and the level at x = 0, from the medians of two halves."""
    half = len(x) // 2
    x1, x2 = float(np.median(x[:half])), float(np.median(x[half:]))
    y1, y2 = float(np.median(y[:half])), float(np.median(y[half:]))
    slope = (y1 - y2) / max(x2 - x1, 1e-9)
    return slope, y2 - slope * (0.0 - x2)


@dataclass(frozen=True, slots=True)
class Slow:
    """A loss that falls in proportion to the learning rate spent, as at the very start of training."""

    gain: float
    """Fall of the loss over the run [nat]."""
    start: float
    """Loss of the first rows [nat]."""
    late_share: float
    """Share of the gain made in the second half of the learning rate spent; learning runs make most of it early."""
    error: float
    grad_ratio: float | None
    """Late over early median gradient norm."""


def slow_descent(lr: Points, loss: Curve, grad: Curve) -> Slow | None:
    """How the loss falls with the cumulative learning rate; None below 60 rows."""
    if len(loss) < 60 or len(lr) < 3:
        return None
    spent = np.concatenate(([0.0], np.cumsum(0.5 * (lr.value[1:] + lr.value[:-1]) * np.diff(lr.step))))
    at = np.interp(loss.step, lr.step, spent)
    blocks = min(BLOCKS, len(loss) // 6)
    edges = np.linspace(0, len(loss), blocks + 1).astype(np.int64)
    parts = [slice(a, b) for a, b in pairwise(edges.tolist())]
    level = np.array([np.median(loss.value[p]) for p in parts])
    place = np.array([np.median(at[p]) for p in parts])
    start = float(np.median(loss.value[: max(3, len(loss) // 100)]))
    gain = start - float(level[-1])
    if at[-1] <= 0:
        return None
    middle = float(np.interp(0.5 * at[-1], place, level))
    error = MEDIAN_ERROR * row_noise(loss.value) * sqrt(2 / (len(loss) / blocks))
    ratio = None
    if len(grad) >= 20:
        part = max(5, len(grad) // 10)
        early, late = float(np.median(grad.value[:part])), float(np.median(grad.value[-part:]))
        ratio = late / early if early > 0 else None
    return Slow(gain, start, (middle - float(level[-1])) / gain if gain > 0 else 0.0, error, ratio)
