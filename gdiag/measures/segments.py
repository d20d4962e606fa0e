"""Segments: in which order one file's rows were written, where writing restarted, and who wrote.

Steps that go back mean a restart from an earlier checkpoint, a second writer, or rows without order; the three look
alike row by row and differ in how the pieces continue one another.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

MOST_PIECES = 50_000
"""Beyond so many pieces a file is called unordered without looking further."""


@dataclass(frozen=True, slots=True)
class Layout:
    """How the rows of one source follow one another."""

    segment: Ints
    """Number of each row's segment, 0, 1, … in the order of writing."""
    writer: Ints
    """Number of each row's writer; all 0 unless several writers take turns."""
    order: Literal["ordered", "unordered", "interleaved"]


def layout(step: Ints, again: NDArray[np.bool_] | None = None) -> Layout:
    """Tell restarts, unordered rows and writers that take turns apart.

    Rows that hold every step exactly once, without a gap, are without order, however they lie.

    Args:
        step: steps of one source (and one rank) in file order.
        again: rows that begin a segment although the step does not go back (measures.rewinds).
    """
    zero = np.zeros(len(step), dtype=np.int64)
    back = _breaks_back(step)
    if again is not None:
        back |= again
    if not back.any():
        return Layout(zero, zero, "ordered")
    ordered = np.unique(step)
    if len(ordered) == len(step) and np.diff(ordered).max() <= 3 * interval(ordered):
        return Layout(zero, zero, "unordered")
    pieces = int(back.sum()) + 1
    if pieces <= MOST_PIECES:
        writer = _writers(step)
        if writer is not None:
            return Layout(writer, writer, "interleaved")
    if pieces >= 5 and len(step) / pieces < 3:
        return Layout(zero, zero, "unordered")
    return Layout(np.cumsum(back).astype(np.int64), zero, "ordered")


def interval(step: Ints) -> int:
    """The usual distance of two logged steps: the most frequent positive difference, at least 1."""
    gaps = np.diff(step)
    gaps = gaps[gaps > 0]
    if not len(gaps):
        return 1
    values, counts = np.unique(gaps, return_counts=True)
    return int(values[np.argmax(counts)])


def regular_share(step: Ints) -> float:
    """Share of the distances of logged steps that equal the usual one; 1 for a log without gaps."""
    gaps = np.diff(step)
    gaps = gaps[gaps > 0]
    return float(np.mean(gaps == interval(step))) if len(gaps) else 1.0


def gaps(step: Ints, *, factor: float = 5.0) -> list[tuple[int, int]]:
    """Stretches without logging: (last step before, first step after), each over `factor` usual distances.

    Usual is what is so all over the log, or around the place: where the interval changes nothing is missing. Needs a regular
    log (half of the distances equal); a sampled export has no gaps but a coarser interval.
    """
    if len(step) < 10 or regular_share(step) < 0.5:
        return []
    apart = np.diff(step)
    at = np.flatnonzero(apart > factor * interval(step))
    if len(at):
        sides = np.pad(apart.astype(np.float64), AROUND, constant_values=np.nan)
        around = np.lib.stride_tricks.sliding_window_view(sides, AROUND)
        near = np.fmax(_middle(around[at]), _middle(around[at + AROUND + 1]))
        at = at[~(apart[at] <= factor * near)]
    return [(int(step[i]), int(step[i + 1])) for i in at]


AROUND = 5
"""Distances on either side of one by which it is usual there."""


def _middle(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Median of each row; NaN where more than half of it is missing, so that one distance at an end says nothing."""
    few = np.count_nonzero(np.isnan(rows), axis=1) > AROUND // 2
    found = np.full(len(rows), np.nan)
    found[~few] = np.nanmedian(rows[~few], axis=1)
    return found


def _breaks_back(step: Ints) -> NDArray[np.bool_]:
    """Rows that begin a new segment: the step goes back and stays back (one late row is no restart)."""
    back = np.zeros(len(step), dtype=bool)
    if len(step) < 2:
        return back
    back[1:] = np.diff(step) < 0
    for i in np.flatnonzero(back)[:MOST_PIECES]:
        late = i + 1 < len(step) and step[i + 1] > step[i - 1] and not back[i + 1]
        if late and step[i + 1] - step[i - 1] <= max(1, abs(int(step[i - 1]) - int(step[i]))):
            back[i] = False
    return back


def _writers(step: Ints) -> Ints | None:
    """The writer of each row where several take turns, else None.

    Pieces are appended to the chain they continue. Writers that take turns continue their own chain exactly where they
    left it, again and again; restarts do so only by chance.
    """
    usual = interval(np.unique(step))
    cut = np.flatnonzero((np.diff(step) < 0) | (np.diff(step) > 3 * usual)) + 1
    starts = np.concatenate([[0], cut])
    ends = np.concatenate([cut, [len(step)]])
    if not 5 <= len(starts) <= MOST_PIECES:
        return None
    last: list[int] = []
    chain = np.empty(len(starts), dtype=np.int64)
    turns = 0
    for i, (a, b) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        first = int(step[a])
        open_ = [c for c in range(len(last)) if last[c] < first]
        best = max(open_, key=lambda c: last[c]) if open_ else len(last)
        if best == len(last):
            last.append(0)
            if len(last) > 8:
                return None
        elif i and best != chain[i - 1] and first - last[best] <= 2 * usual:
            turns += 1
        chain[i] = best
        last[best] = int(step[b - 1])
    if turns < 4 or turns < 0.7 * (len(starts) - len(last)):
        return None
    return np.repeat(chain, ends - starts)
