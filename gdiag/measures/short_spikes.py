"""Spikes of the loss that are over in one to three rows, told from hard batches by how rarely chance gives the like.

The scan of episodes needs four raised rows; what is over sooner is looked for here: in windows of one, two and three rows,
in the loss alone and in loss and gradient norm together. One figure judges all: how many windows that far out a run like
this holds by chance.

1. A cell (one row of one column) is as rare as few other rows of the column reach it: -ln of their share, extrapolated
   beyond the farthest (measures.rarity).
2. A row is as rare as its least rare cell, times its cells; a window as its least rare row, times its rows: the product
   of the shares, were cells and rows independent.
3. They are not always: a hard batch raises loss and gradient at once, noise is correlated from row to row. So after each
   step the figure is held against the same figure of all other rows, of all other windows, and loses as much as those
   thin out more slowly than independence has it.
4. A run of n rows holds n exp(-rarity) such windows by chance. A window is told where that is below its share of the
   budget: RATE false alarms in 100,000 rows, thus n RATE / 100,000 in this run, and not less than LEAST in a short one.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import factorial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from gdiag.measures.baseline import Floats, running_median
from gdiag.measures.curves import Curve, Path
from gdiag.measures.data import least_spread, own_history_z
from gdiag.measures.episodes import Scan, scan
from gdiag.measures.rarity import Column
from gdiag.measures.step_time import Bools

Stretch = tuple[int, int]
"""First and last row, inclusive."""


RATE: Final = 0.05
"""A twentieth of a false alarm in 100,000 rows for each of six windows: under a third of what all checks may have together."""
LEAST: Final = 0.0005
"""The figure of chance that is told in every run, however short: that of 1,000 rows. The tails are drawn so far out that
single rows are rarer than their figure says: of 776 healthy runs (1,000 rows in the median) the least figure is 0.0053 in the
loss alone, the next 0.011, and 0.017 and 0.052 in loss and gradient norm together. Their limits lie below (0.004, 0.01)."""


@dataclass(frozen=True, slots=True)
class Window:
    """A kind of short spike, and what it is held to."""

    rows: int
    with_gradient: bool
    """Loss and gradient norm together, else the loss alone."""
    share: float
    """Least peak over what the run has gained."""
    most: int
    """So many are looked at, farthest first, and told together."""
    peak: float = 6.0
    """Least peak, in robust standard deviations of the loss: what is called an outlier."""
    rate: float = RATE
    """False alarms allowed in 100,000 rows."""
    least: float = LEAST
    """False alarms allowed in a run."""


WINDOWS: Final = (
    Window(3, with_gradient=True, share=0.01, most=10), Window(3, with_gradient=False, share=0.03, most=10),
    Window(2, with_gradient=True, share=0.01, most=10), Window(2, with_gradient=False, share=0.03, most=10),
    Window(1, with_gradient=True, share=0.01, most=2, peak=4.5, least=0.01),
    Window(1, with_gradient=False, share=0.03, most=10, least=0.004),
)  # fmt: skip
"""Widest first: rows of what was found count in no tail. In loss and gradient norm together two single rows are told at
most: more are the run's hard batches, which raise both."""
MANY_CHANCE: Final = 0.1
"""Several windows are told together where chance gives fewer than this that are as far out as the least of them."""
BACK_ROWS, BACK_Z = 4, 3.0
"""The rows after a window are below this on average, else it is part of a level that stays up."""
RAISED_Z: Final = 4.0
"""Rows next to a window that are over this belong to it."""
HABIT_ROWS: Final = 3
"""So many single rows below the loss that the run began with are a habit of the data: a harmed model does not come back
within one row each time, and a hard batch is no worse than one that nothing was learned of."""
PROVEN_Z: Final = 6.0
"""A single row whose batch has a token entropy, or a share of duplicates, this far from its own history is a garbled batch
at any height over that, …"""
ODD_SHARE: Final = 0.003
"""… unless more rows than this share of the others, and more than two, are as far from theirs: batches of few samples often are."""
MOST_PROVEN: Final = 10
LEAST_ROWS: Final = 30


def short_spikes(path: Path, found: Scan, start: float) -> list[Stretch]:
    """Stretches of rows outside the scan's episodes that chance does not explain, in order.

    Args:
        path: where the gradient norm and the batch statistics are looked up.
        found: the scan of the path's loss.
        start: the loss at the start of the run, nat.
    """
    z, rows = found.z, len(found.z)
    free = np.arange(rows) >= found.warmup
    for episode in found.episodes:
        free[episode.onset : episode.last + 1] = False
    stretches: list[Stretch] = [(row, row) for row in _proven(path, found)]
    gradient = _gradient_z(path)
    gained = np.maximum(0.0, start - found.base.level)
    excess = z * found.base.scale
    rare: dict[bool, Rarities] = {}
    for window in WINDOWS:
        joint = window.with_gradient
        high = (z >= window.peak) & (excess >= window.share * gained)
        if free.sum() < LEAST_ROWS or not (free & high).any() or (joint and gradient is None):
            continue
        if joint not in rare:
            rare[joint] = rarities(np.stack([z, gradient]) if joint and gradient is not None else z[None], free)
        firsts = unlikely(rare[joint], window, high)
        ordinary = all(excess[row] < gained[row] for row in firsts)
        if window.rows == 1 and len(firsts) >= HABIT_ROWS and ordinary:
            continue
        for first in firsts:
            stretch = _extent(first, first + window.rows - 1, free & (z > RAISED_Z))
            stretches.append(stretch)
            free[stretch[0] : stretch[1] + 1] = False
            rare.clear()
    return _joined(stretches)


@dataclass(frozen=True, slots=True)
class Rarities:
    """How rare the rows of some columns are."""

    cells: Floats
    """Deviations, (columns, rows)."""
    free: Bools
    """Rows that count."""
    columns: tuple[Column, ...]
    """Of `cells`."""
    row: Floats
    """-ln of the share of rows that reach each row in all columns, were columns independent."""
    rows: Column
    """Of `row`."""

    def least(self, first: int, rows: int, taken: NDArray[np.int64]) -> float:
        """-ln of the share of rows, less those `taken`, as rare as the least rare of `rows` from `first` on."""
        return min(
            self.rows.thinned(
                len(self.cells)
                * min(c.beyond(float(z[row]), z[taken]) for c, z in zip(self.columns, self.cells, strict=True)),
                self.row[taken],
            )
            for row in range(first, first + rows)
        )


def rarities(cells: Floats, free: Bools) -> Rarities:
    """Rarities of the rows of `cells` (columns, rows) among those that are `free`, LEAST_ROWS at least."""
    columns = tuple(Column.of(z[free]) for z in cells)
    row = len(cells) * np.min([column.rarity(z) for column, z in zip(columns, cells, strict=True)], axis=0)
    row[~free] = 0.0
    return Rarities(cells, free.copy(), columns, row, Column.of(row[free]))


def unlikely(rare: Rarities, window: Window, high: Bools) -> list[int]:
    """First rows of the windows that chance does not explain: as many of the farthest as can be told together.

    Args:
        rare: the columns that the window looks at.
        window: rows, rate and most.
        high: rows that may be a peak.
    """
    rows, count = window.rows, len(rare.rows.held)
    may = _least(rare.free, rows) & ~_least(~high, rows) & _comes_back(rare.cells[0], rows)
    if not may.any():
        return []
    ranked = rare.row if len(rare.cells) == 1 else rare.rows.rarity(rare.row)
    every = rows * _least(ranked, rows)
    windows = Column.of(every)
    chosen: list[int] = []
    for first in np.flatnonzero(may)[np.argsort(-every[may], kind="stable")].tolist():
        if all(abs(first - other) >= rows for other in chosen):
            chosen.append(first)
        if len(chosen) == window.most:
            break
    while chosen:
        taken = np.unique(np.add.outer(chosen, np.arange(rows)))
        beside = np.unique(np.maximum(0, np.subtract.outer(taken, np.arange(rows))))
        worth = windows.thinned(rows * rare.least(chosen[-1], rows, taken), every[beside])
        expected = count * float(np.exp(-worth))
        # Several single rows are how hard batches come; several stretches at once are as rare as all of them together.
        many = len(chosen) if rows > 1 else 1
        chance = expected**many / factorial(many) if expected < MANY_CHANCE else 1.0
        if chance < max(window.least, window.rate * count / 100_000):
            break
        chosen.pop()
    return sorted(chosen)


def _least(value: NDArray[Any], rows: int) -> NDArray[Any]:
    """The least of `rows` values from each row on; 0 for the last rows, which have fewer after them."""
    least = np.zeros_like(value)
    least[: len(value) - rows + 1] = np.lib.stride_tricks.sliding_window_view(value, rows).min(axis=1)
    return least


def _comes_back(z: Floats, rows: int) -> Bools:
    """Whether the mean of the rows after a window that begins at each row is low, or there are none."""
    total = np.concatenate([[0.0], np.cumsum(z)])
    after = np.minimum(np.arange(len(z)) + rows, len(z))
    end = np.minimum(after + BACK_ROWS, len(z))
    back: Bools = total[end] - total[after] < BACK_Z * np.maximum(1, end - after)
    return back


def _extent(first: int, last: int, raised: Bools) -> Stretch:
    """The window with the raised rows next to it."""
    while first > 0 and raised[first - 1]:
        first -= 1
    while last + 1 < len(raised) and raised[last + 1]:
        last += 1
    return first, last


def _joined(stretches: list[Stretch]) -> list[Stretch]:
    """Stretches of rows in order; what overlaps or follows at once is one."""
    joined: list[Stretch] = []
    for first, last in sorted(stretches):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(last, joined[-1][1]))
        else:
            joined.append((first, last))
    return joined


def _proven(path: Path, found: Scan) -> list[int]:
    """Outliers whose batch differs from all others by its own statistic: two columns that nothing else moves together."""
    told = [curve for name in ("token_entropy", "duplicate_share") if len(curve := path.curve(name))]
    if not told:
        return []
    rows = found.outliers[found.z[found.outliers] > PROVEN_Z]
    rows = rows[np.argsort(found.z[rows])[::-1]][:MOST_PROVEN]
    steps = path.curve("loss").step[rows].tolist()
    told = [curve for curve in told if len(rows) and not _often_odd(curve)]
    odd = [max((abs(own_history_z(curve, step) or 0.0) for curve in told), default=0.0) for step in steps]
    return [int(row) for row, z in zip(rows.tolist(), odd, strict=True) if z > PROVEN_Z]


def _often_odd(curve: Curve) -> bool:
    """Whether a statistic of batches is far from its level in many stretches of rows that lie apart."""
    level = running_median(curve.value, 4 * LEAST_ROWS, centre=True)
    off = np.abs(curve.value - level)
    usual = max(1.4826 * float(np.median(off)), least_spread(curve.name, float(np.median(level))))
    far = np.flatnonzero(off > PROVEN_Z * usual)
    stretches = int(np.sum(np.diff(far) > LEAST_ROWS)) + 1 if len(far) else 0
    return stretches > max(2, ODD_SHARE * len(curve))


def _gradient_z(path: Path) -> Floats | None:
    """Deviation of the logarithm of the gradient norm at each row of the loss, 0 where there is none; None below 30 rows."""
    steps, curve = path.curve("loss").step, path.curve("grad_norm")
    positive = curve.finite.keep(curve.value > 0)
    if len(positive) < LEAST_ROWS:
        return None
    deviation = scan(np.log(positive.value)).z
    at = np.minimum(np.searchsorted(positive.step, steps), len(positive) - 1)
    return np.where(positive.step[at] == steps, deviation[at], 0.0)
