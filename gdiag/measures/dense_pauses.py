"""Pauses so frequent that about every second logged row holds one: neither level is then the usual one by its number.

A pause every P steps in a log of every D-th falls into the rows in the most even order there is: distances of the rarer
kind of row differ by one at most (a Sturmian word, see Lothaire, Algebraic Combinatorics on Words, chapter 2).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from gdiag.measures.baseline import mad_sigma
from gdiag.measures.chances import log10_tail
from gdiag.measures.curves import Floats
from gdiag.measures.levels import WINDOW, centred_median
from gdiag.measures.segments import Ints
from gdiag.measures.step_time import Bools

DENSE = 0.2
"""Share of rows with a pause from which they weigh on a running median and on the spread above it."""
LASTING = 0.5
"""Share of the log over which a habit lasts; slow steps that begin and end are an episode."""
LEAST = 8
"""Rows of the rarer kind."""
EVEN = 0.9
"""Least share of distances that differ by one at most; the others may hold a stall or a late row."""


@dataclass(frozen=True, slots=True)
class Dense:
    """Rows with a pause in the most even order."""

    rows: Ints
    excess: Floats
    """Logarithm of each row's time over that of rows without a pause around it, 0 for those: (n,)."""
    share: float
    """Share of rows with a pause from the first to the last one."""
    evenness: float
    log10_chance: float


def find(y: Floats, judged: Bools, least: float) -> Dense | None:
    """The rows with a pause, where they are many and evenly spread; None where they are not.

    Args:
        y: logarithm of the step times, (n,).
        judged: rows outside warm-up and restarts, (n,).
        least: least distance of the two levels, in the logarithm.
    """
    use = np.flatnonzero(judged)
    if len(use) < 2 * LEAST:
        return None
    # Where nearly all rows are alike, there are no two levels to tell apart, and nothing to run a window over.
    if np.ptp(np.quantile(y[use], [0.02, 0.98])) < least:
        return None
    low = _low(y[use])
    rest = y[use] - low
    split = _split(rest)
    high = rest > split
    if not 2 <= high.sum() < len(use):
        return None
    first, last = np.flatnonzero(high)[[0, -1]]
    if last - first < LASTING * len(use):
        return None
    share = (high.sum() - 1) / max(1, last - first)
    calm, slow = rest[~high], rest[high]
    apart = float(np.median(slow) - np.median(calm))
    if share < DENSE or apart < least or np.quantile(slow, 0.05) - np.quantile(calm, 0.95) < 0.3 * apart:
        return None
    evenness, chance = _even(high[first : last + 1])
    if evenness < EVEN or chance > -4:
        return None
    # What is far above the rows with a pause is something else, if only another pause.
    slow = y[use[high]] - centred_median(y[use[high]], WINDOW)
    rows = use[high][slow <= max(least, 6 * mad_sigma(slow))]
    usual = np.interp(np.arange(len(y)), use[~high], centred_median(y[use][~high], WINDOW))
    excess = np.zeros(len(y))
    excess[rows] = y[rows] - usual[rows]
    return Dense(rows, excess, float(share), evenness, chance)


def _low(y: Floats) -> Floats:
    """A running level of the quicker rows: the lower fifth of those around."""
    quantile = pl.Series(y).rolling_quantile(0.2, window_size=min(WINDOW, len(y)), center=True, min_samples=5)
    return quantile.fill_null(strategy="forward").fill_null(strategy="backward").to_numpy()


def _split(rest: Floats) -> float:
    """The border between two kinds of row: the largest variance between them (Otsu 1979)."""
    ordered = np.sort(rest)
    n = len(ordered)
    sums = np.cumsum(ordered)
    below = np.arange(1, n)
    between = (sums[-1] * below / n - sums[:-1]) ** 2 / (below * (n - below))
    at = int(np.argmax(between))
    return float((ordered[at] + ordered[at + 1]) / 2)


def _even(high: Bools) -> tuple[float, float]:
    """Share of the rarer kind's distances that are the whole numbers around their mean, and log10 of its chance."""
    rare = np.flatnonzero(high if high.mean() <= 0.5 else ~high)
    if len(rare) < LEAST:
        # Every row has a pause but a few: no rhythm can be told from so few.
        return 0.0, 0.0
    gaps = np.diff(rare)
    p = len(gaps) / float(rare[-1] - rare[0])
    usual = int(1 / p)
    even = (gaps == usual) | (gaps == usual + 1)
    chance = p * (1 - p) ** (usual - 1) * (2 - p)
    return float(even.mean()), log10_tail(len(gaps), int(even.sum()), chance)
