"""busbw over message size: the curve of a test run, its plateau, and the dips and falls in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from gdiag.measures.bandwidth_blocks import Block, Measured, SweepRows, middle
from gdiag.measures.curves import Floats
from gdiag.measures.segments import Ints

if TYPE_CHECKING:
    from gdiag.measures.bandwidth import Sweep

MIB: Final = 1 << 20
SMALL: Final = 64 << 10
"""Messages up to this size [B] measure latency, not bandwidth."""
PLATEAU_FROM: Final = 1 << 30
"""Sizes from 1 GiB on are on the plateau of every fabric in hardware.md 2.2."""


def levels(table: SweepRows) -> Measured:
    """Of each run: plateau, peak [GB/s], largest [B], latency [µs, NaN unknown], ratio (busbw/algbw, NaN unknown), error, wrong.

    The plateau is the median busbw from 1 GiB on, or of the three largest sizes where these are higher: a curve may rise
    beyond 1 GiB. ratio: at the highest algbw of the four largest sizes, error: its printing error. wrong: the most wrong
    elements in a row, -1 where none was counted.
    """
    return table.measured("levels", _levels)


def _levels(block: Block) -> Measured:
    order = np.argsort(block.size, kind="stable")
    size = block.size[order]
    busbw, algbw = block.values("busbw")[:, order], block.values("algbw")[:, order]
    starts = np.flatnonzero(size[1:] != size[:-1]) + 1
    third = int(starts[-3]) if len(starts) > 2 else 0
    last, long = middle(busbw[:, third:]), middle(busbw[:, int(np.searchsorted(size, PLATEAU_FROM)) :])
    small = np.flatnonzero((block.size <= SMALL) & (block.size > 0))[2:]
    wrong = np.fmax.reduce(block.values("wrong"), axis=1)
    ratio, error = _ratio(algbw, busbw)
    return {
        "plateau": np.where(long > last, long, last),
        "peak": busbw.max(axis=1),
        "largest": np.full(len(busbw), size[-1]),
        "latency": middle(block.values("time")[:, small]) if len(small) else np.full(len(busbw), np.nan),
        "ratio": ratio,
        "error": error,
        "wrong": np.where(np.isnan(wrong), -1.0, wrong),
    }


def _ratio(algbw: Floats, busbw: Floats) -> tuple[Floats, Floats]:
    """busbw/algbw at the largest sizes and its printing error; both in order of size."""
    usable = algbw >= 0.1
    usable &= np.cumsum(usable[:, ::-1], axis=1)[:, ::-1] <= 4
    best = np.argmax(np.where(usable, algbw, -np.inf), axis=1)[:, None]
    high = np.take_along_axis(algbw, best, axis=1)[:, 0]
    ratio = np.take_along_axis(busbw, best, axis=1)[:, 0] / high
    none = ~usable.any(axis=1)
    return np.where(none, np.nan, ratio), np.where(none, 0.0, 0.005 / high * (1 + ratio))


def by_size(sweep: Sweep) -> tuple[Ints, Floats]:
    """Sizes, ascending, and the median busbw at each over sides and cycles."""
    span = sweep.span
    sizes, curves = curves_of(sweep.values("size"), sweep.table.arrays["busbw"][None, span])
    return sizes, curves[0]


def curves_of(size: Ints, busbw: Floats) -> tuple[Ints, Floats]:
    """Sizes, ascending, and each run's median at each; a size has as many rows in one run as in another."""
    order = np.argsort(size, kind="stable")
    sizes, starts, counts = np.unique(size[order], return_index=True, return_counts=True)
    found = np.empty((len(busbw), len(sizes)))
    for count in np.unique(counts).tolist():
        mine = np.flatnonzero(counts == count)
        found[:, mine] = middle(busbw[:, order[starts[mine][:, None] + np.arange(count)]])
    return sizes, found


def shapes(table: SweepRows, dip: float = 0.75) -> Measured:
    """What the curve of each run does after its peak, in order of size: the median at each over sides and cycles.

    peak_size [B]. dip_size: of a dip that recovers, 0 without one; dip_share: bandwidth there as a share of the envelope
    around it. collapse_size: the first of a fall that does not recover, 0 without one; collapse_share: bandwidth at the
    largest sizes as a share of the peak before the fall.
    """
    return table.measured(("shape", dip), lambda block: _shapes(block, dip))


def _shapes(block: Block, dip: float) -> Measured:
    sizes, values = curves_of(block.size, block.values("busbw"))
    values, sizes = values[:, sizes > SMALL], sizes[sizes > SMALL]
    runs = np.arange(len(values))
    found: Measured = {
        "peak_size": np.full(len(runs), block.size.max()),
        "dip_size": np.zeros(len(runs), dtype=np.int64),
        "dip_share": np.ones(len(runs)),
        "collapse_size": np.zeros(len(runs), dtype=np.int64),
        "collapse_share": np.ones(len(runs)),
    }
    if len(sizes) < 4:
        return found
    before = np.maximum.accumulate(values, axis=1)
    after = np.maximum.accumulate(values[:, ::-1], axis=1)[:, ::-1]
    low = values < dip * before
    peak = np.argmax(values, axis=1)
    top = values[runs, peak]
    found["peak_size"] = sizes[peak]
    tail = low & (np.arange(len(sizes)) >= peak[:, None])
    falls = (tail.sum(axis=1) >= 2) & low[:, -1] & ~(tail & ~(after < 0.85 * top[:, None])).any(axis=1)
    found["collapse_size"] = np.where(falls, sizes[np.argmax(tail, axis=1)], 0)
    found["collapse_share"] = np.where(falls, middle(values[:, -2:]) / top, 1.0)
    inside = low & (after >= 0.95 * before)
    dips = inside.any(axis=1)
    worst = np.argmin(np.where(inside, values / before, np.inf), axis=1)
    found["dip_size"] = np.where(dips, sizes[worst], 0)
    found["dip_share"] = np.where(dips, values[runs, worst] / before[runs, worst], 1.0)
    return found
