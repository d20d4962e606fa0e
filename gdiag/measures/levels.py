"""Changes of level in a noisy positive series: level shift, bump, drift, or wandering (diagnosis.md 2.3).

Isolated slow points are set aside, block medians are cut into pieces of constant level (PELT with an L2 cost, its
penalty raised for autocorrelation), cuts below the floor are dropped, and a cut counts as a shift only when most of its
size is reached within a few blocks; a slow change must be a trend by Mann-Kendall as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Literal

import numpy as np
import polars as pl

from gdiag.measures.curves import Floats
from gdiag.measures.segments import Ints
from gdiag.measures.step_time import Bools
from gdiag.measures.trends import mann_kendall, theil_sen

Kind = Literal["shift", "bump", "drift", "wander"]

MOST_BLOCKS: Final = 400
LEAST_BLOCKS: Final = 5
SWINGS: Final = 6
"""Cuts from which a series swings rather than changes (a throttled clock does, every minute): longer blocks then show
the level around which it swings."""
WINDOW: Final = 201
"""Elements of the running median that stalls are held against."""
LOCAL: Final = 10
"""Blocks on each side that a jump is measured on."""
SHARP: Final = 0.6
BLURRED: Final = 0.35
"""Sharpness below `SHARP` from which a cut is still a shift when a step fits its two pieces better than any ramp: a
clock that swings between two states blurs the step at which it began to."""


@dataclass(frozen=True, slots=True)
class Change:
    """One change of level; indices are those of the series given."""

    kind: Kind
    start: int
    """First element at the new level, or where the drift begins."""
    end: int
    """Last element that the change concerns: before the return for a bump, else the last one."""
    before: float
    after: float
    """Typical values before and after (for a drift: at its end)."""
    certain: bool
    """False when noise of 5 % or more makes shift and drift hard to tell apart."""

    @property
    def ratio(self) -> float:
        """after / before."""
        return self.after / self.before


@dataclass(frozen=True, slots=True)
class Levels:
    """What a series does: its changes and its noise."""

    changes: tuple[Change, ...]
    noise: float
    """Relative noise of single values (robust sigma of the logarithm)."""


def find(values: Floats, judged: Bools | None = None, *, floor: float = 0.05) -> Levels:
    """Changes of `values` (positive, in order) by at least `floor`, relative.

    Elements that are not judged (warm-up) are left out; the indices still count them.
    """
    use = np.flatnonzero(np.ones(len(values), dtype=bool) if judged is None else judged)
    if len(use) < 40:
        return Levels((), 0.0)
    y = np.log(values[use])
    middle = centred_median(y, WINDOW)
    noise = robust_sigma(y - middle)
    calm = np.flatnonzero((y - middle) < max(np.log1p(0.1), 6 * noise))
    size = max(10, -(-len(calm) // MOST_BLOCKS)) if len(calm) >= 200 else max(2, len(calm) // 20)
    if len(calm) // size < 2 * LEAST_BLOCKS:
        return Levels((), noise)
    blocks, firsts, cuts = _pieces(y, calm, size, floor)
    while len(cuts) >= SWINGS and len(calm) // (2 * size) >= 2 * LEAST_BLOCKS:
        size *= 2
        blocks, firsts, cuts = _pieces(y, calm, size, floor)
    found = _classify(blocks, cuts, floor)
    changes = tuple(_placed(c, y, firsts, use, noise) for c in found)
    return Levels(changes, noise)


def _pieces(y: Floats, calm: Ints, size: int, floor: float) -> tuple[Floats, Ints, list[int]]:
    """Block medians, the first element of each block, and the cuts between pieces of constant level."""
    # The remainder goes to the first block, so that the last block ends with the series.
    edges = np.append(0, len(calm) - size * np.arange(len(calm) // size - 1, -1, -1))
    blocks = np.array([np.median(y[calm[a:b]]) for a, b in pairwise(edges)])
    return blocks, calm[edges[:-1]], _cuts(blocks, floor)


def centred_median(y: Floats, window: int) -> Floats:
    """Running median over `window` elements centred on each, shorter at the ends."""
    width = min(window, max(3, len(y) // 4 * 2 + 1))
    return (
        pl.Series(y)
        .rolling_median(width, center=True, min_samples=max(1, width // 4))
        .fill_null(strategy="forward")
        .fill_null(strategy="backward")
        .to_numpy()
    )


def robust_sigma(values: Floats) -> float:
    """1.4826 × median absolute deviation."""
    return float(1.4826 * np.median(np.abs(values - np.median(values)))) if len(values) else 0.0


def _cuts(blocks: Floats, floor: float) -> list[int]:
    """First blocks of all pieces but the first: PELT, then cuts smaller than the floor dropped, smallest first."""
    difference = np.diff(blocks)
    sigma = max(robust_sigma(difference) / np.sqrt(2), 1e-4)
    ends = _pelt(blocks, 4 * sigma**2 * np.log(len(blocks)) * _inflation(blocks, sigma))
    while ends:
        levels = [float(np.median(p)) for p in np.split(blocks, ends)]
        sizes = [abs(b - a) for a, b in pairwise(levels)]
        weakest = int(np.argmin(sizes))
        if sizes[weakest] >= np.log1p(floor) * 0.97:
            break
        del ends[weakest]
    return ends


def _inflation(blocks: Floats, sigma: float) -> float:
    """How much more a level wanders than independent blocks would, by lag-1 correlation around a running median."""
    rest = blocks - centred_median(blocks, 15)
    if len(rest) < 10 or np.std(rest) < 1e-9:
        return 1.0
    rest = np.clip(rest, -4 * sigma, 4 * sigma)
    r = float(np.clip(np.corrcoef(rest[:-1], rest[1:])[0, 1], 0.0, 0.8))
    return (1 + r) / (1 - r)


def _pelt(y: Floats, penalty: float) -> list[int]:
    """Best cuts under an L2 cost with pieces of at least LEAST_BLOCKS; exact, O(m²) with m ≤ MOST_BLOCKS."""
    m = len(y)
    s1, s2 = np.append(0.0, np.cumsum(y)), np.append(0.0, np.cumsum(y * y))
    best = np.full(m + 1, np.inf)
    best[0] = -penalty
    last = np.zeros(m + 1, dtype=int)
    for t in range(LEAST_BLOCKS, m + 1):
        a = np.arange(0, t - LEAST_BLOCKS + 1)
        cost = s2[t] - s2[a] - (s1[t] - s1[a]) ** 2 / (t - a)
        total = best[a] + cost + penalty
        k = int(np.argmin(total))
        best[t], last[t] = total[k], a[k]
    cuts: list[int] = []
    t = m
    while last[t] > 0:
        t = int(last[t])
        cuts.append(t)
    return cuts[::-1]


@dataclass(frozen=True, slots=True)
class _Piece:
    kind: Kind
    first: int
    stop: int
    before: float
    after: float


def _classify(blocks: Floats, cuts: list[int], floor: float) -> list[_Piece]:
    if not cuts:
        drift = _drift(blocks, 0, len(blocks), floor)
        return [drift] if drift else []
    edges = [0, *cuts, len(blocks)]
    levels = [float(np.median(blocks[a:b])) for a, b in pairwise(edges)]
    sharp = [_is_step(blocks, edges, levels, k) for k in range(1, len(edges) - 1)]
    pieces: list[_Piece] = []
    k = 1
    while k < len(edges) - 1:
        up = levels[k] > levels[k - 1]
        stop = k
        while (
            stop + 1 < len(edges) - 1
            and not sharp[stop - 1]
            and not sharp[stop]
            and (levels[stop + 1] > levels[stop]) == up
        ):
            stop += 1
        if sharp[k - 1]:
            pieces.append(_shift(edges, levels, k, floor))
        else:
            first = edges[k - 1]
            drift = _drift(blocks, first, edges[stop + 1], floor)
            level = _Piece("wander", edges[k], edges[stop + 1], levels[k - 1], levels[stop])
            pieces.append(drift or level)
        k = stop + 1
    if all(p.kind == "wander" for p in pieces):
        drift = _drift(blocks, 0, len(blocks), floor)
        return [drift] if drift else pieces
    return pieces


def _is_step(blocks: Floats, edges: list[int], levels: list[float], k: int) -> bool:
    sharpness = _sharpness(blocks, edges, levels, k)
    if not BLURRED <= sharpness < SHARP:
        return sharpness >= SHARP
    y, at = blocks[edges[k - 1] : edges[k + 1]], edges[k] - edges[k - 1]
    return float(np.var(y[:at]) * at + np.var(y[at:]) * (len(y) - at)) < _hinge(y)[1]


def _sharpness(blocks: Floats, edges: list[int], levels: list[float], k: int) -> float:
    """Share of a cut's size that is reached between the blocks just before and just after it."""
    cut, low, high = edges[k], edges[k - 1], edges[k + 1]
    left = blocks[max(low, cut - 2 - LOCAL) : max(low + 1, cut - 2)]
    right = blocks[min(high - 1, cut + 2) : min(high, cut + 2 + LOCAL)]
    whole = levels[k] - levels[k - 1]
    if not len(left) or not len(right) or whole == 0:
        return 0.0
    near = (float(np.median(right)) - float(np.median(left))) / whole
    # A jump shows within two blocks as well; a ramp over ten blocks does not.
    close_left, close_right = blocks[max(low, cut - 3) : cut], blocks[cut : min(high, cut + 3)]
    step = (float(np.median(close_right)) - float(np.median(close_left))) / whole
    return min(near, step + 0.35)


def _shift(edges: list[int], levels: list[float], k: int, floor: float) -> _Piece:
    """A shift, or a bump when a later level is back near the old one."""
    before, after = levels[k - 1], levels[k]
    for later in range(k + 1, len(levels)):
        if abs(levels[later] - before) < max(np.log1p(floor), 0.35 * abs(after - before)):
            return _Piece("bump", edges[k], edges[later], before, after)
    return _Piece("shift", edges[k], edges[-1], before, after)


def _drift(blocks: Floats, first: int, stop: int, floor: float) -> _Piece | None:
    """A trend over blocks first … stop that adds up to the floor and is one by Mann-Kendall; None when it is not."""
    y = blocks[first:stop]
    if len(y) < 2 * LEAST_BLOCKS:
        return None
    total = theil_sen(y) * (len(y) - 1)
    ends = float(np.median(y[-max(3, len(y) // 10) :]) - np.median(y[: max(3, len(y) // 10)]))
    if max(abs(total), abs(ends)) < np.log1p(floor):
        return None
    at, _ = _hinge(y)
    # A late drift is no trend of the whole stretch: what counts is the slope itself and a little of the flat before it.
    if abs(mann_kendall(y[max(0, at - LOCAL) :])) <= 4:
        return None
    return _Piece("drift", first + at, stop, float(np.median(y[: max(3, at)])), float(np.median(y[-3:])))


def _hinge(y: Floats) -> tuple[int, float]:
    """Where a flat stretch turns into a slope, and what is left of the squares: the best over all corners."""
    n = len(y)
    t = np.arange(n, dtype=float)
    best, at = np.inf, 0
    for corner in range(0, n - LEAST_BLOCKS):
        ramp = np.maximum(0.0, t - corner)
        ramp -= ramp.mean()
        rest = y - y.mean()
        rest = rest - ramp * (rest @ ramp) / max(ramp @ ramp, 1e-12)
        cost = float(rest @ rest)
        if cost < best * (1 - 1e-9):
            best, at = cost, corner
    return at, best


def _placed(piece: _Piece, y: Floats, firsts: Ints, use: Ints, noise: float) -> Change:
    """The piece in elements of the series: a shift is placed where two levels fit the values best."""
    start = int(firsts[piece.first])
    if piece.kind in ("shift", "bump"):
        start = _split(y, firsts, piece.first, piece.before, piece.after)
    stop = len(y) if piece.stop >= len(firsts) else int(firsts[piece.stop])
    if piece.kind == "bump":
        stop = _split(y, firsts, piece.stop, piece.after, piece.before)
    return Change(
        piece.kind, int(use[start]), int(use[max(start, stop - 1)]), float(np.exp(piece.before)), float(np.exp(piece.after)),
        certain=noise < 0.05,
    )  # fmt: skip


def _split(y: Floats, firsts: Ints, block: int, before: float, after: float) -> int:
    """The element around the first of `block` that parts two levels best, by absolute errors.

    All elements count, for those set aside as stalls near a change may be the first ones at the new level: the median
    they were held against was still that of the old one. A stall more or less does not move the answer.
    """
    low = max(0, int(firsts[max(0, block - 3)]) - WINDOW // 2)
    high = int(firsts[block + 3]) if block + 3 < len(firsts) else len(y)
    inside = y[low:high]
    cost = np.append(0.0, np.cumsum(np.abs(inside - before) - np.abs(inside - after)))
    return min(low + int(np.argmin(cost)), len(y) - 1)
