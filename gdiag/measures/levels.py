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

from gdiag.measures.baseline import mad_sigma, row_noise
from gdiag.measures.curves import Floats
from gdiag.measures.ramps import fit_ramp, slopes, trend
from gdiag.measures.segments import Ints
from gdiag.measures.step_time import Bools

Kind = Literal["shift", "bump", "drift", "wander"]

MOST_BLOCKS: Final = 400
LEAST_BLOCKS: Final = 5
SWINGS: Final = 6
"""Cuts from which a series swings rather than changes (a throttled clock does, every minute): longer blocks then show
the level around which it swings."""
WINDOW: Final = 201
"""Elements of the running median that stalls are held against."""
NEIGHBOURS: Final = 9
"""Rows around a slow one, itself included, of which half are as slow when it is no isolated one."""
SURE: Final = 6.0
"""Evidence of a drift over no change, in the natural logarithm of the number of blocks."""


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
    noise = mad_sigma(y - middle)
    most = max(np.log1p(0.1), 6 * noise)
    # A slow step among its like is no isolated one: it belongs to a new level.
    calm = np.flatnonzero(((y - middle) < most) | (centred_median(y, NEIGHBOURS) - middle >= most))
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


def _cuts(blocks: Floats, floor: float) -> list[int]:
    """First blocks of all pieces but the first: PELT, then cuts smaller than the floor dropped, smallest first."""
    sigma = max(row_noise(blocks), 1e-4)
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
    """Cuts in one direction are a drift where one slope explains them better than jumps, else each is judged alone."""
    edges = [0, *cuts, len(blocks)]
    levels = [float(np.median(blocks[a:b])) for a, b in pairwise(edges)]
    sigma = max(row_noise(blocks), 1e-4)
    inflation = _inflation(blocks, sigma)
    pieces: list[_Piece] = []
    k = 1
    while k < len(edges) - 1:
        stop = k
        while stop + 1 < len(edges) - 1 and (levels[stop + 1] > levels[stop]) == (levels[k] > levels[k - 1]):
            stop += 1
        if not _slopes(blocks, edges, k, stop, inflation):
            stop = k
        if _slopes(blocks, edges, k, stop, inflation):
            level = _Piece("wander", edges[k], edges[stop + 1], levels[k - 1], levels[stop])
            pieces.append(_drift(blocks, edges[k - 1], edges[stop + 1], floor) or level)
        else:
            pieces.append(_shift(edges, levels, k, floor))
        k = stop + 1
    if all(p.kind == "wander" for p in pieces):
        drift = _drift(blocks, 0, len(blocks), floor)
        return [drift] if drift else pieces
    return pieces


def _slopes(blocks: Floats, edges: list[int], k: int, stop: int, inflation: float) -> bool:
    """Whether cuts k … stop lie on one slope."""
    first = edges[k - 1]
    return slopes(blocks[first : edges[stop + 1]], [cut - first for cut in edges[k : stop + 1]], inflation)


def _shift(edges: list[int], levels: list[float], k: int, floor: float) -> _Piece:
    """A shift, or a bump when a later level is back near the old one."""
    before, after = levels[k - 1], levels[k]
    for later in range(k + 1, len(levels)):
        if abs(levels[later] - before) < max(np.log1p(floor), 0.35 * abs(after - before)):
            return _Piece("bump", edges[k], edges[later], before, after)
    return _Piece("shift", edges[k], edges[-1], before, after)


def _drift(blocks: Floats, first: int, stop: int, floor: float) -> _Piece | None:
    """A slope over blocks first … stop that adds up to the floor and explains them far better than no change at all."""
    y = blocks[first:stop]
    if len(y) < 2 * LEAST_BLOCKS:
        return None
    ramp = fit_ramp(y)
    if abs(ramp.after - ramp.before) < np.log1p(floor) or trend(y, ramp) < SURE:
        return None
    if ramp.narrow(len(y)):  # a jump so near the end that no piece of constant level follows
        return _Piece("shift", first + ramp.first + 1, stop, ramp.before, ramp.after)
    return _Piece("drift", first + ramp.first, stop, ramp.before, float(np.median(y[-3:])))


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
