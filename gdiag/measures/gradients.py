"""The global gradient norm: before clipping, without the loss scale, and its shocks, growth and roughness."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from gdiag.measures.curves import Curve, Points
from gdiag.measures.layers import Floats, LayerTable, Steps, against_history

ROUGH = 0.4
"""Typical change of the log gradient norm from row to row from which it is not steady."""


@dataclass(frozen=True, slots=True)
class Scaling:
    """How the logged gradient norm follows the loss scale."""

    slope: float
    """log grad norm against log loss scale over the changes of the scale: 1 = multiplied by it, 0 = free of it."""
    changes: int
    span: float
    """Largest / smallest loss scale."""

    @property
    def scaled(self) -> bool:
        """Whether the norm was logged multiplied by the scale."""
        return bool(abs(self.slope - 1.0) <= 0.3 and (self.changes >= 2 or self.span >= 4))


@dataclass(frozen=True, slots=True)
class Surge:
    """A stretch in which the gradient norm stands far above its own history."""

    first: int
    """Row of the onset: first row of the rise that reaches the peak's stretch."""
    last: int
    peak: int
    ratio: float
    """Peak / level before."""
    z: float
    """Robust standard deviations above the level; 0 for a rise so slow that no row stands out."""
    rows: int
    """Rows above half of `factor` times the level before."""
    recovered: bool
    level: float
    """Median before the onset."""


@dataclass(frozen=True, slots=True)
class Roughness:
    """How unsteady the gradient norm is from row to row, in quarters of the run."""

    quarters: tuple[float, float, float, float]
    """1.4826 × median absolute difference of successive log values."""
    growth: float
    """Largest later quarter / smallest earlier one."""
    z: float
    """Rank-sum score of the row-to-row changes of the roughest later quarter against the calmest quarter before it."""
    level_growth: float
    """Median of the last tenth / smallest median of an earlier tenth."""
    onset: int
    """Row since which it is rough: the start of the run, or of the rougher part."""


def scaling(grad: Curve, scale: Curve, rows: int = 20) -> Scaling | None:
    """Slope of log grad norm over log loss scale, from up to `rows` rows on both sides of each change of the scale.

    Healthy fp16 logs print raw norms of 1e3–1e5 that are 0.2–0.6 after division (diagnosis 4.4).
    """
    both, at_grad, at_scale = np.intersect1d(grad.step, scale.step, return_indices=True)
    g, s = grad.value[at_grad], scale.value[at_scale]
    good = (g > 0) & (s > 0)
    if len(both) == 0 or np.count_nonzero(good) < 10:
        return None
    g, s = np.log(g[good]), np.log(s[good])
    cuts = np.flatnonzero(np.diff(s) != 0) + 1
    edges = [0, *cuts.tolist(), len(s)]
    above = below = 0.0
    used = 0
    for k, cut in enumerate(cuts[:500].tolist()):
        left, right = g[max(edges[k], cut - rows) : cut], g[cut : min(edges[k + 2], cut + rows)]
        if len(left) >= 2 and len(right) >= 2:
            jump = s[cut] - s[cut - 1]
            above += jump * float(np.median(right) - np.median(left))
            below += jump * jump
            used += 1
    return Scaling(float(above / below), used, float(np.exp(s.max() - s.min()))) if used else None


def unscaled(grad: Curve, scale: Curve) -> Curve:
    """`grad` divided by the loss scale of the same step, or of the last step before it that has one."""
    if not len(scale) or not len(grad):
        return grad
    at = np.clip(np.searchsorted(scale.step, grad.step, side="right") - 1, 0, None)
    factor = np.where(scale.value[at] > 0, scale.value[at], 1.0)
    return replace(grad, finite=replace(grad.finite, value=grad.value / factor))


def total_of_layers(table: LayerTable, *, whole: bool = False) -> Curve:
    """Norm of all layers together as the root of their squares, for logs that hold only the layers.

    whole: leave out rows that lack a layer; else what is logged counts.
    """
    squares = np.zeros(len(table.step))
    for _, values in table.blocks():
        logged = ~np.isnan(values) | whole
        with np.errstate(over="ignore"):
            squares += (np.where(logged, values, 0.0) ** 2).sum(axis=1)
    total = np.sqrt(squares)
    points = Points(table.step, total, table.source, table.line)
    finite = np.isfinite(total) & (total > 0)
    return Curve(table.columns[0].quantity, points.keep(finite), points.keep(~np.isfinite(total)))


def log_history(value: Floats) -> tuple[Floats, Floats]:
    """(change, scale) of the log of a series against the blocks of rows before; NaN where it is not positive."""
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(value > 0, np.log(np.where(value > 0, value, 1.0)), np.nan)
    change, scale = against_history(logs[:, None], int(np.clip(len(value) // 16, 8, 100)), 0.05)
    return change[:, 0], scale[:, 0]


def surges(value: Floats, factor: float = 5.0, z: float = 6.0, most: int = 200) -> list[Surge]:
    """Stretches whose peak is `factor` times the level before and `z` robust deviations above it.

    The level is frozen at the onset, so that a long explosion does not become its own baseline. A stretch ends where the
    median of five rows is below twice that level, or twice the usual one of all rows before: gradients that were asleep
    and are of their old size again have not exploded.
    """
    change, scale = log_history(value)
    hot = np.flatnonzero((change > np.log(factor)) & (change > z * scale))
    hot = hot[hot >= 8]
    found: list[Surge] = []
    row = 0
    for at in hot.tolist():
        if at < row or len(found) >= most:
            continue
        level = float(np.exp(np.log(value[at]) - change[at]))
        first = at
        bound = max(np.log(2.0), 3 * float(scale[at]))
        while first > row and first > 8 and value[first - 1] > level * np.exp(bound):
            first -= 1
        first = max(row, _ramp_start(value, first, at, level))
        until = _stretch(value, at, 2 * level)
        usual = float(np.median(value[:first]))
        last = _stretch(value, at, 2 * usual) if usual > level else until
        if (next_one := _dwarfed(value, change, hot, at, last)) is not None:
            last = until = next_one - 1
        peak = first + int(np.argmax(value[first : last + 1]))
        with np.errstate(divide="ignore"):
            ratio = float(np.exp(min(700.0, float(np.log(value[peak]) - np.log(level)))))
        rows = int(np.count_nonzero(value[first : last + 1] > level * factor / 2))
        recovered = last < len(value) - 1
        strength = float((np.log(value[peak]) - np.log(level)) / scale[at])
        found.append(Surge(first, last, peak, ratio, strength, rows, recovered, level))
        row = max(last, until) + 1
    return found


CALM_ROWS, RUN_UP = 30, 6
DWARFS = 10.0
"""Rows at a new level, but for a short run-up, after which a rise that reaches so many times the largest before it is another one."""


def _dwarfed(value: Floats, change: Floats, hot: Steps, at: int, last: int) -> int | None:
    """First row of a later surge within rows `at` to `last` that dwarfs this one; None without one.

    Gradients that wake up as a network begins to learn stay at their new level: what blows up from there has its own onset.
    """
    for row in hot[(hot > at + CALM_ROWS) & (hot <= last)].tolist():
        begin = row
        while begin > row - RUN_UP and change[begin - 1] > np.log(2.0):
            begin -= 1
        calm = bool((change[row - CALM_ROWS : begin] < np.log(3.0)).all())
        if calm and value[begin : last + 1].max() > DWARFS * value[at:begin].max():
            return int(begin)
    return None


def explodes(curve: Curve, surge: Surge, high: float, rows: int) -> bool:
    """Whether a surge lasts: `rows` rows above `high` times its level, or three and the run ends at that height or not finite.

    What does not is a spike, however high.
    """
    over = int(np.count_nonzero(curve.value[surge.first : surge.last + 1] > high * surge.level))
    if over >= rows or over < 3 or surge.recovered:
        return over >= rows
    tail = float(np.median(curve.value[max(surge.first, surge.last - 9) : surge.last + 1]))
    return tail >= high * surge.level or bool((curve.nonfinite.step > curve.step[surge.last]).any())


def _ramp_start(value: Floats, first: int, at: int, level: float) -> int:
    """Onset of a slow exponential ramp: the line through 2 and 8 times the level, followed down to the level.

    A sudden rise crosses both within three rows and keeps `first`.
    """
    begin = max(0, at - 300)
    part = value[begin : at + 60]
    if len(part) < 12:
        return first
    middle = np.median(np.lib.stride_tricks.sliding_window_view(part, 5), axis=1)
    under = np.flatnonzero(middle[: at - begin] < 2 * level)
    low = int(under[-1]) + 1 if len(under) else 0
    over = np.flatnonzero(middle[low:] >= 8 * level)
    if not len(over) or over[0] <= 3:
        return first
    start = max(0, low - round(0.5 * int(over[0])))
    while start < low and middle[start] < 1.25 * level:  # a step that goes on rising is no ramp: nothing rose before it
        start += 1
    return min(first, begin + start + 2)


def lasting_rise(value: Floats, factor: float = 10.0, rows: int = 9) -> tuple[int, float] | None:
    """(row, ratio) since which the median of `rows` stays above half of `factor` times its own earlier minimum, to the end.

    None when the last tenth is not `factor` times the minimum before the rise: a slow explosion, not a spike.
    """
    if len(value) < 4 * rows:
        return None
    middle = np.median(np.lib.stride_tricks.sliding_window_view(value, rows), axis=1)
    lowest = np.minimum.accumulate(middle)
    final = float(np.median(middle[-max(3, len(middle) // 10) :]))
    high = middle >= 0.5 * factor * np.concatenate([[np.inf], lowest[:-1]])
    share = np.cumsum(high[::-1])[::-1] / np.arange(len(high), 0, -1)
    starts = np.flatnonzero(high & (share >= 0.9))
    if not len(starts) or starts[0] < rows:
        return None
    low = float(lowest[starts[0] - 1])
    if low <= 0 or final < factor * low:
        return None
    row = int(starts[0])
    while row > rows and value[row + rows // 2] < np.sqrt(0.5 * factor) * low:
        row += 1
    return min(len(value) - 1, row + rows // 2), final / low


def _stretch(value: Floats, at: int, bound: float) -> int:
    """Last row of the stretch above `bound` that begins at `at`."""
    last = _end(value, at, bound)
    while last + 1 < len(value) and value[last + 1] > bound:
        last += 1
    return last


def _end(value: Floats, at: int, bound: float, rows: int = 5) -> int:
    """Last row of the stretch that begins at `at`: before the first row from which the median of `rows` is below `bound`."""
    for start in range(at + 1, len(value), 1000):
        part = value[start : start + 1000 + rows - 1]
        if len(part) < rows:
            return start - 1 if np.median(part) < bound else len(value) - 1
        low = np.median(np.lib.stride_tricks.sliding_window_view(part, rows), axis=1) < bound
        if low.any():
            return start + int(low.argmax()) - 1
    return len(value) - 1


def steady(value: Floats, rows: int = 200, factor: float = 20.0) -> bool:
    """Whether a series of gradient norms is calm: not rough over its last `rows`, no long or huge surge in twice as many and no
    lasting rise, unless it is as long ago and at its new level since."""
    if len(value) < 16:
        return True
    tail = np.log(value[-rows:][value[-rows:] > 0])
    if len(tail) > 8 and 1.4826 * float(np.median(np.abs(np.diff(tail)))) > 1.25 * ROUGH:
        return False
    late = value[-2 * rows :]
    if any(s.ratio >= factor * 5 or (s.ratio >= factor / 2 and s.rows >= 50) for s in surges(late)):
        return False
    rise = lasting_rise(value)
    if rise is None or len(value) - rise[0] <= 2 * rows:
        return rise is None
    return float(np.median(value[-rows:])) <= 2 * float(np.median(value[rise[0] + rows // 2 :][:rows]))


def roughness(value: Floats, least_rows: int = 40) -> Roughness | None:
    """Unsteadiness of the log gradient norm from row to row; None for a short series.

    Measured on trained networks: 0.12–0.40 when healthy and falling over the run, 0.44–2 and rising where the learning
    rate is too high.
    """
    logs = np.log(value[value > 0])
    if len(logs) < least_rows:
        return None
    quarters = np.array_split(np.abs(np.diff(logs)), 4)
    parts = [1.4826 * float(np.median(part)) for part in quarters]
    pairs = [(parts[k] / max(1e-9, min(parts[:k])), int(np.argmin(parts[:k])), k) for k in range(1, 4)]
    growth, calm, wild = max(pairs)
    tenths = [float(np.median(part)) for part in np.array_split(logs, 10)]
    return Roughness(
        (parts[0], parts[1], parts[2], parts[3]), float(growth), _rank_sum(quarters[calm], quarters[wild]),
        float(np.exp(min(700.0, tenths[-1] - min(tenths[:-1])))), _rough_since(logs, parts),
    )  # fmt: skip


def _rough_since(logs: Floats, parts: list[float]) -> int:
    """Row since which three of four sixteenths of the series are rough; 0 where it is rough from the start."""
    if parts[0] >= ROUGH or parts[0] >= 0.7 * max(parts):
        return 0
    fine = np.array([1.4826 * float(np.median(part)) for part in np.array_split(np.abs(np.diff(logs)), 16)])
    high = fine >= np.sqrt(max(fine.min(), 1e-9) * min(fine.max(), 2.0))
    share = np.cumsum(high[::-1])[::-1] / np.arange(16, 0, -1)
    first = int(np.argmax(high & (share >= 0.75)))
    return min(len(logs) - 1, first * len(logs) // 16)


def _rank_sum(calm: Floats, wild: Floats) -> float:
    """Mann-Whitney score (normal approximation) of `wild` being larger than `calm`."""
    n, m = len(calm), len(wild)
    rank = np.empty(n + m)
    rank[np.argsort(np.concatenate([calm, wild]), kind="stable")] = np.arange(1, n + m + 1)
    return float((rank[n:].sum() - m * (n + m + 1) / 2) / np.sqrt(n * m * (n + m + 1) / 12))
