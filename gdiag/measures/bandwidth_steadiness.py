"""Whether a benchmark's figures are steady and agree with each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from gdiag.measures.bandwidth_blocks import Block, Measured, SweepRows, middle
from gdiag.measures.bandwidth_curves import MIB, SMALL

if TYPE_CHECKING:
    from gdiag.measures.bandwidth import Sweep


@dataclass(frozen=True, slots=True)
class Jitter:
    """Unsteadiness of a sweep."""

    small_share: float
    """Share of small rows slower than three times their median."""
    small_ratio: float
    """Median of those rows over the median of the others."""
    sides: float
    """Median difference of in-place and out-of-place at the largest sizes, as a share."""
    slow_cycles: tuple[int, ...]
    """Sizes that are at least 1.3 times slower than their median in two cycles or more."""


def jitter(sweep: Sweep) -> Jitter:
    """How steady small messages, the two sides and the repeats are; the first row of a run is warm-up and left out."""
    seen, at = jitters(sweep.table), sweep.number
    slow = _slow_cycles(sweep.rows) if seen["cycles"][at] >= 4 else ()
    return Jitter(float(seen["small_share"][at]), float(seen["small_ratio"][at]), float(seen["sides"][at]), slow)


def jitters(table: SweepRows) -> Measured:
    """Of each run: small_share, small_ratio and sides as in `Jitter`, and cycles, its number of repeats."""
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


def _slow_cycles(rows: pl.DataFrame) -> tuple[int, ...]:
    repeats = rows.with_columns(slow=pl.col("time") > 1.3 * pl.col("time").median().over("size", "in_place"))
    again = repeats.filter("slow").group_by("size").agg(n=pl.col("cycle").n_unique())
    return tuple(again.filter(pl.col("n") >= 2)["size"].sort().to_list())


@dataclass(frozen=True, slots=True)
class Agreement:
    """Whether a sweep's own figures agree with each other."""

    size_over_time: float | None
    """Median of (size/time)/algbw over rows of at least 1 GB/s; None when it cannot be formed."""
    odd_rows: int
    """Rows where it differs from the sweep's own median by more than 3 %."""
    rows: int
    mean_busbw: float
    """Mean of all busbw cells."""
    average: float | None


def agreement(sweep: Sweep) -> Agreement:
    """size/time against algbw, and the printed average against the mean of the rows."""
    seen, at = agreements(sweep.table), sweep.number
    rows = int(seen["rows"][at])
    share = float(seen["size_over_time"][at]) if rows else None
    return Agreement(share, int(seen["odd_rows"][at]), rows, float(seen["mean_busbw"][at]), sweep.average)


def agreements(table: SweepRows) -> Measured:
    """Of each run: size_over_time, odd_rows, rows and mean_busbw as in `Agreement`."""
    return table.measured("agreement", _agreements)


def _agreements(block: Block) -> Measured:
    algbw, times = block.values("algbw"), block.values("time")
    usable = (algbw >= 1) & (times > 0) & ~block.cpu_time
    factor = np.divide(block.size / 1e3, times * algbw, out=np.full(times.shape, np.inf), where=usable)
    rows = usable.sum(axis=1)
    # The usable ones come first; without any the median is of no row and not used.
    share = middle(factor, rows)
    odd = (usable & (np.abs(factor / share[:, None] - 1) > 0.03)).sum(axis=1)
    return {"size_over_time": share, "odd_rows": odd, "rows": rows, "mean_busbw": block.values("busbw").mean(axis=1)}
