"""Whether a benchmark's figures are steady and agree with each other."""

from __future__ import annotations

import numpy as np
import polars as pl

from gdiag.measures.bandwidth_blocks import Block, Measured, SweepRows, middle
from gdiag.measures.bandwidth_curves import MIB, SMALL, curves_of


def jitters(table: SweepRows) -> Measured:
    """How steady small messages, the two sides and the repeats of each run are; its first row is warm-up and left out.

    small_share: share of small rows slower than three times their median. small_ratio: median of those rows over that of the
    others. sides: median difference of in-place and out-of-place at the largest sizes, as a share. cycles: repeats.
    """
    return table.measured("jitter", _jitters)


def _jitters(block: Block) -> Measured:
    times, busbw = block.values("time"), block.values("busbw")
    runs = len(times)
    share, ratio, gap = np.zeros(runs), np.zeros(runs), np.zeros(runs)
    small = times[:, np.flatnonzero((block.size <= SMALL) & (block.size > 0))[2:]]
    if small.shape[1] >= 8:
        slow = small > 3 * middle(small)[:, None]
        share, ratio = slow.mean(axis=1), np.ones(runs)
        for run in np.flatnonzero(slow.any(axis=1)).tolist():
            # Times may be logged as 0: then the ratio is infinite.
            ratio[run] = np.divide(middle(small[run, slow[run]]), middle(small[run, ~slow[run]]))
    large = block.size >= max(MIB, int(block.size.max()) // 8)
    a, b = busbw[:, large & ~block.in_place], busbw[:, large & block.in_place]
    if a.shape[1] == b.shape[1] >= 2:
        gap = middle(np.abs(a - b) / np.maximum(np.maximum(a, b), 1e-9))
    cycles = np.full(runs, len(np.unique(block.cycle)))
    return {"small_share": share, "small_ratio": ratio, "sides": gap, "cycles": cycles}


def floors(table: SweepRows, *, least: float = 1e3, flat: float = 0.05) -> Measured:
    """floor: time [µs] that messages of 1 MiB and more take whatever their size, NaN without one; last: the largest of them [B].

    Times within a share `flat` of each other over four times the size or more are no transfer: the fabric waits for
    something. least: µs from which on it is looked at; below lies the latency of many ranks.
    """
    return table.measured(("floor", least, flat), lambda block: _floors(block, least, flat))


def _floors(block: Block, least: float, flat: float) -> Measured:
    long = np.flatnonzero(block.size >= MIB)
    runs = len(block.numbers)
    floor, last = np.full(runs, np.nan), np.zeros(runs)
    if len(long):
        sizes, times = curves_of(block.size[long], block.values("time")[:, long])
        for first in range(len(sizes)):
            end = int(np.searchsorted(sizes, 4 * sizes[first])) + 1
            if end > len(sizes):
                break
            low, high = times[:, first:end].min(axis=1), times[:, first:end].max(axis=1)
            held = (low >= least) & (high <= (1 + flat) * low)
            floor = np.where(held & np.isnan(floor), low, floor)
            last = np.where(held & (high <= (1 + flat) * floor), sizes[end - 1], last)
    return {"floor": floor, "last": last}


def slow_cycles(rows: pl.DataFrame) -> tuple[int, ...]:
    """Sizes [B] that are at least 1.3 times slower than their median in two cycles or more, in the rows of one run."""
    repeats = rows.with_columns(slow=pl.col("time") > 1.3 * pl.col("time").median().over("size", "in_place"))
    again = repeats.filter("slow").group_by("size").agg(n=pl.col("cycle").n_unique())
    return tuple(again.filter(pl.col("n") >= 2)["size"].sort().to_list())


def agreements(table: SweepRows) -> Measured:
    """Whether the figures of each run agree with each other.

    rows: those of at least 1 GB/s, in which (size/time)/algbw can be formed; odd_rows: those of them where it differs from
    the run's own median by more than 3 %. mean_busbw: mean of all busbw cells [GB/s].
    """
    return table.measured("agreement", _agreements)


def _agreements(block: Block) -> Measured:
    algbw, times = block.values("algbw"), block.values("time")
    usable = (algbw >= 1) & (times > 0) & ~block.cpu_time
    factor = np.divide(block.size / 1e3, times * algbw, out=np.full(times.shape, np.inf), where=usable)
    rows = usable.sum(axis=1)
    # The usable ones come first; without any the median is of no row and not used.
    share = middle(factor, rows)
    odd = (usable & (np.abs(factor / share[:, None] - 1) > 0.03)).sum(axis=1)
    return {"odd_rows": odd, "rows": rows, "mean_busbw": block.values("busbw").mean(axis=1)}
