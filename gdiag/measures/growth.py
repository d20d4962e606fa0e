"""Levels that grow and stay: attention logits, output logits, parameter norms."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gdiag.measures.curves import Curve
from gdiag.measures.layers import Floats, LayerTable
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


@dataclass(frozen=True, slots=True)
class Acceleration:
    """Norms that begin to grow faster than before, and go on until they have grown a lot."""

    row: int
    """Row at which the faster growth begins."""
    ratio: float
    """Pace after over pace before, the smallest of those per step, per learning rate and per its square."""
    growth: float
    """Logarithm of the growth from there to the end, median layer."""
    layers: int
    """Layers that grow at least half as much."""


def weight_logs(table: LayerTable, most: int = 64) -> tuple[Floats, int]:
    """Logarithms of up to `most` parameter norms, (rows, layers), and how many there are: embeddings and norm layers apart."""
    judged = [i for i, c in enumerate(table.columns) if c.kind not in ("norm", "embedding")]
    pick = [judged[int(k)] for k in np.unique(np.linspace(0, len(judged) - 1, min(len(judged), most)).astype(int))]
    logs = [np.log(np.maximum(table.values(i), 1e-300)) for i in pick]
    return (np.stack(logs, axis=1) if logs else np.empty((len(table.step), 0))), len(judged)


def rate_at(step: NDArray[np.int64], lr: Curve) -> Floats:
    """Learning rate at each of `step`, (n,), between its logged rows; ones where it is not logged."""
    return np.interp(step, lr.step, lr.value) if len(lr) > 1 else np.ones(len(step))


MANY_TIMES = 20.0
"""A pace that rose so much began anew: how little there was before tells nothing, how much there is now dates it."""


def accelerated(logs: Floats, rate: Floats, *, least: float, blocks: int = 40) -> Acceleration | None:
    """The place where most of `logs`, shape (rows, layers), begin to grow faster; None below 80 rows or with values that are not
    finite.

    Norms of a healthy run slow down all the time: each step adds to the square of the norm, and decay takes from it. A
    coherent step grows with the learning rate, a random one with its square, so the pace is divided by the `rate` of each
    row to the powers 0, 1 and 2 and the smallest rise counts: a schedule explains none of the three at once. Rows before
    the rate reaches its peak are not judged. `least` is the growth (logarithm) that must follow.
    """
    blocks = min(blocks, len(logs) // 4)
    if blocks < 20 or not rate.max() > 0 or not logs.size or not np.isfinite(logs).all():
        return None
    parts = np.array_split(np.arange(len(logs)), blocks)
    level = np.array([np.median(logs[p], axis=0) for p in parts])
    usual = np.median(level, axis=1)
    share = np.array([np.median(rate[p]) for p in parts]) / float(rate.max())
    between = np.maximum(0.5 * (share[1:] + share[:-1]), 1e-3)
    pace = np.diff(usual)
    begin = max(int(np.argmax(share >= 0.9)), blocks // 10)
    best: tuple[float, float, int, float] = (0.0, 0.0, 0, 0.0)
    for block in range(begin + 3, blocks - 4):
        if usual[-1] - usual[block] < least:
            break
        ratio = _rise(pace, between, slice(max(begin, block - 6), block), slice(block, block + 4))
        faster = float(np.median(pace[block : block + 4]) - np.median(pace[max(begin, block - 6) : block]))
        best = max(best, (min(ratio, MANY_TIMES), faster, block, ratio))
    _, _, block, ratio = best
    if not block:
        return None
    growth = level[-1] - level[block]
    near = np.arange(parts[max(begin, block - 5)][0], parts[block + 3][-1] + 1)
    row = int(near[_corner(np.cumsum(rate)[near], np.median(logs[near], axis=1))])
    most = float(np.median(growth))
    return Acceleration(row, ratio, most, int(np.count_nonzero(growth > 0.5 * most)))


def _rise(pace: Floats, share: Floats, before: slice, after: slice) -> float:
    """Smallest ratio of the median paces after and before, over the powers of the learning rate."""
    ratios = []
    for power in (0, 1, 2):
        scaled = pace / share**power
        ratios.append(float(np.median(scaled[after])) / max(float(np.median(scaled[before])), 1e-6))
    return min(ratios)


def _corner(x: Floats, y: Floats) -> int:
    """Index at which a line in `x` changes its slope: least squares over at most sixty corners."""
    tried = np.unique(np.linspace(2, len(x) - 3, min(60, len(x) - 4)).astype(int))
    errors = []
    for corner in tried:
        design = np.column_stack([np.ones_like(x), x - x[corner], np.maximum(x - x[corner], 0.0)])
        fitted = design @ np.linalg.lstsq(design, y, rcond=None)[0]
        errors.append(float(((y - fitted) ** 2).sum()))
    return int(tried[int(np.argmin(errors))])
