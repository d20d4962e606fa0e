"""After an episode: the level that was to be expected, when the curve is back at it, and how fast."""

from __future__ import annotations

import numpy as np

from gdiag.measures.baseline import Baseline, Floats, running_median


class Line:
    """A level that falls with the logarithm of the row down to a floor, or stays."""

    def __init__(self, level: float, slope: float, origin: int, floor: float = -np.inf) -> None:
        self.level, self.slope, self.origin, self.floor = level, slope, origin, floor

    def __call__(self, row: int) -> float:
        return max(self.floor, self.level + self.slope * float(np.log((row + 1) / (self.origin + 1))))

    def over(self, first: int, last: int) -> Floats:
        """The level at rows first … last, `last` exclusive."""
        fall = self.level + self.slope * np.log((np.arange(first, last) + 1) / (self.origin + 1))
        return np.maximum(self.floor, fall)


def expected_level(value: Floats, base: Baseline, onset: int) -> Line:
    """The level that rows from `onset` on would have had: Theil-Sen in log-time over the ten blocks before, never rising.

    A curve that is nowhere below zero is not expected to fall below half its level: a loss that has just been driven
    close to zero promises no further fall of that size.
    """
    span = min(onset, 5 * base.window)
    width = span // 10
    level = float(base.level[onset])
    if width < 4:
        return Line(level, 0.0, onset)
    blocks = np.median(value[onset - 10 * width : onset].reshape(10, width), axis=1)
    when = np.log(onset - 10 * width + width * (np.arange(10) + 0.5) + 1)
    i, j = np.triu_indices(10, 1)
    slope = min(0.0, float(np.median((blocks[j] - blocks[i]) / (when[j] - when[i]))))
    return Line(level, slope, onset, level / 2 if float(value.min()) >= 0 else -np.inf)


def recovery_row(value: Floats, expected: Line, onset: int, peak: int, margin: float, scale: float) -> int | None:
    """First row, within 500 or a twentieth of the curve, from which the curve is back.

    The median of the nine rows around it is within `margin` of the level expected, it is not raised itself, and the median
    of the thirty rows from there lies at most 0.3 times as far above it as the highest median of five rows: a level that
    stays up touches the margin by chance.
    """
    reach = min(len(value), peak + max(500, len(value) // 20))
    rows = np.arange(peak + 1, reach)
    if not len(rows):
        return None
    above = value[onset : min(len(value), reach + 30)] - expected.over(onset, min(len(value), reach + 30))
    smooth = running_median(above[: reach - onset], 9, centre=True)[peak - onset + 1 :]
    own = above[peak - onset + 1 : reach - onset]
    limit = max(0.5 * scale, 0.3 * float(running_median(above, 5, centre=True).max()))
    for row in rows[(smooth <= margin) & (own <= margin + 3 * scale)].tolist():
        ahead = above[row - onset : row - onset + 30]
        if len(ahead) < 5 or float(np.median(ahead)) <= limit:
            return int(row)
    return None


def regained_row(value: Floats, level: float, peak: int, noise: float) -> int | None:
    """First row after `peak` from which nine rows are at `level` or below and thirty no more than the noise above it, in medians.

    What was lost by then is made good, though the curve would have fallen further meanwhile.
    """
    rest = value[peak + 1 :]
    if len(rest) < 9:
        return None
    back = np.median(np.lib.stride_tricks.sliding_window_view(rest, 9), axis=1) <= level
    if not back.any():
        return None
    stays = np.zeros(len(back), dtype=bool)
    whole = max(0, len(rest) - 29)
    if whole:
        stays[:whole] = np.median(np.lib.stride_tricks.sliding_window_view(rest, 30), axis=1) <= level + noise
    stays[whole:] = [np.median(rest[k:]) <= level + noise for k in range(whole, len(back))]
    found = np.flatnonzero(back & stays)
    return peak + 1 + int(found[0]) if len(found) else None


def half_life(
    value: Floats, expected: Line, peak: int, recovery: int, excess: float, scale: float
) -> tuple[float, float]:
    """From the area under the decay (peaks picked on a noise maximum make it too short) to twice that at low excess."""
    area = float(np.sum(np.maximum(0.0, value[peak:recovery] - expected.over(peak, recovery))))
    low = max(0.5, float(np.log(2)) * area / excess)
    return low, low * (1 + min(1.5, 8 * scale / excess))
