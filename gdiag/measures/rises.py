"""Small lasting steps up of a loss in loud noise: a matched filter of long windows, held against the run's own swings.

A step of height h in noise of standard deviation s shows in the means of w rows on each side with h / (s sqrt(2 / w)):
0.3 nat in noise of 0.3 nat needs some 70 rows on each side for six standard errors. A curve that learns falls between two
windows, so any rise is evidence; what the fall hides is given back only where the windows beside both fall as fast.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from gdiag.measures.baseline import MAD_TO_SIGMA, Floats, running_median
from gdiag.measures.ramps import slopes

WINDOWS: Final = (24, 48, 96, 192, 384, 768)
"""Rows on each side."""
ERRORS: Final = 7.0
"""Standard errors of a step."""
OVER_SWINGS: Final = 2.0
"""A step must be this many times the largest rise of the same run elsewhere."""
LEAST_SHARE: Final = 0.008
"""Least height over what the run has gained."""
BLOCK: Final = 8


@dataclass(frozen=True, slots=True)
class Step:
    """A lasting step up; positions are rows of the curve."""

    onset: int
    height: float
    level: float
    """Mean before."""
    error: float
    """Standard error of `height`."""
    window: int


def step_up(value: Floats) -> Step | None:
    """The clearest step up in `value` (n,), finite, in order, without its spikes; None where there is none."""
    rows = len(value)
    if rows < 6 * WINDOWS[0]:
        return None
    sigma = _long_run_sigma(value)
    level = running_median(value, 2 * WINDOWS[0] + 1, centre=True)
    clipped = level + np.clip(value - level, -4 * sigma, 4 * sigma)
    total = np.concatenate([[0.0], np.cumsum(clipped)])
    best: tuple[float, int, int, float] | None = None
    for window in WINDOWS:
        if 4 * window > rows:
            break
        rise, score = _rises(total, window, sigma)
        row = int(np.argmax(score))
        if score[row] < ERRORS or (best is not None and score[row] <= best[0]):
            continue
        apart = np.abs(np.arange(len(rise)) - row) >= window
        apart[: window // 2] = False
        if rise[row] < OVER_SWINGS * max(float(rise[apart].max(initial=0.0)), 0.0):
            continue
        best = float(score[row]), row + window, window, float(rise[row])
    if best is None:
        return None
    _, row, window, height = best
    onset = _split(clipped, row, window)
    before = float(clipped[max(0, onset - window) : onset].mean())
    gain = max(0.0, float(np.median(value[:10])) - before)
    if height < LEAST_SHARE * gain or not _lasts(clipped, onset, window, height) or _slope(clipped, onset, window):
        return None
    return Step(onset, height, before, sigma * float(np.sqrt(2 / window)), window)


def _rises(total: Floats, window: int, sigma: float) -> tuple[Floats, Floats]:
    """Rise between the windows that meet at row `window` + k, and in standard errors, for every k."""
    mean = (total[window:] - total[:-window]) / window
    plain = mean[window:] - mean[:-window]
    error = sigma * np.sqrt(2 / window)
    # Beside the two windows the curve falls by at least that much: a step hides the fall in between.
    beside = np.full(len(plain), 0.0)
    beside[window:-window] = np.minimum(0.0, np.maximum(plain[: -2 * window], plain[2 * window :]))
    given = plain - beside
    score = np.maximum(plain / error, given / (np.sqrt(3) * error))
    return np.where(plain / error >= given / (np.sqrt(3) * error), plain, given), score


def _long_run_sigma(value: Floats) -> float:
    """Standard deviation of rows as means of many rows feel it: second differences of rows and of blocks, the larger."""
    found = []
    for width in (1, BLOCK):
        count = len(value) // width
        means = value[len(value) - count * width :].reshape(count, width).mean(axis=1)
        bend = means[2:] - 2 * means[1:-1] + means[:-2]
        found.append(MAD_TO_SIGMA * float(np.median(np.abs(bend))) * float(np.sqrt(width / 6)))
    return max(*found, 1e-12)


def _split(value: Floats, row: int, window: int) -> int:
    """The row within half a window that parts two levels best."""
    first = max(2, row - window)
    part = value[first : row + window]
    n, total = len(part), np.cumsum(part)
    k = np.arange(1, n)
    between = total[:-1] ** 2 / k + (total[-1] - total[:-1]) ** 2 / (n - k)
    inside = np.abs(first + k - row) <= window // 2
    return first + int(k[inside][np.argmax(between[inside])])


def _lasts(value: Floats, onset: int, window: int, height: float) -> bool:
    """Whether the level after the first window stays: it may fall on as a loss does, not come back at once."""
    later = value[onset + window : onset + 2 * window]
    first = value[onset : onset + window]
    return len(later) < window // 2 or bool(later.mean() > first.mean() - 0.5 * height)


def _slope(value: Floats, onset: int, window: int) -> bool:
    """Whether a slope explains the rise better than a step."""
    width = max(1, window // BLOCK)
    left, right = min(onset, 2 * window) // width, min(len(value) - onset, 2 * window) // width
    part = value[onset - left * width : onset + right * width].reshape(left + right, width).mean(axis=1)
    return slopes(part, [left], 1.0)
