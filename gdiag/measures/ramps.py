"""Whether a level moves in a jump or along a slope: steps and ramps fitted to the same values, the better one wins."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from gdiag.measures.curves import Floats
from gdiag.measures.segments import Ints

CORNERS: Final = 40
"""Places of each corner that are tried first; those around the best follow."""
NARROW: Final = 0.03
"""A slope over so small a share of the values, or over two of them, is a jump."""


@dataclass(frozen=True, slots=True)
class Ramp:
    """A line that is level up to `first`, straight to `last`, and level from there on."""

    first: int
    last: int
    before: float
    after: float
    error: float
    """Sum of squared residuals."""

    def narrow(self, rows: int) -> bool:
        """Whether a ramp through `rows` values is as good as a jump."""
        return self.last - self.first <= max(2.0, NARROW * rows)


def fit_ramp(y: Floats) -> Ramp:
    """The ramp through `y` (n,), n >= 4, with the smallest error."""
    n = len(y)
    corners = np.unique(np.linspace(0, n - 1, min(n, CORNERS)).astype(np.int64))
    best = _best(y, corners, corners)
    gap = -(-n // CORNERS)
    if gap > 1:
        near = np.arange(-gap, gap + 1)
        firsts = np.clip(best.first + near, 0, n - 1)
        best = _best(y, firsts, np.clip(best.last + near, 0, n - 1))
    return best


def _best(y: Floats, firsts: Ints, lasts: Ints) -> Ramp:
    first, last = (grid.ravel() for grid in np.meshgrid(firsts, lasts, indexing="ij"))
    first, last = first[first < last], last[first < last]
    shape = np.clip((np.arange(len(y)) - first[:, None]) / (last - first)[:, None], 0.0, 1.0)
    centred = shape - shape.mean(axis=1, keepdims=True)
    rest = y - y.mean()
    rise = centred @ rest / np.maximum((centred**2).sum(axis=1), 1e-12)
    errors = rest @ rest - rise**2 * (centred**2).sum(axis=1)
    k = int(np.argmin(errors))
    before = float(y.mean() - rise[k] * shape[k].mean())
    return Ramp(int(first[k]), int(last[k]), before, before + float(rise[k]), float(max(errors[k], 0.0)))


def slopes(y: Floats, cuts: list[int], inflation: float) -> bool:
    """Whether one slope explains `y` better than levels that change at `cuts`, each model charged for its parameters.

    Args:
        y: values (n,).
        cuts: first positions of all pieces but the first.
        inflation: how much more the values wander than independent ones would, by their correlation.
    """
    n = len(y)
    if n < 6:
        return False
    ramp = fit_ramp(y)
    if ramp.narrow(n):
        return False
    edges = [0, *cuts, n]
    steps = sum(float(np.sum((y[a:b] - y[a:b].mean()) ** 2)) for a, b in pairwise(edges))
    floor = 1e-12 * n
    gain = n * np.log((steps + floor) / (ramp.error + floor))
    # Levels and places of the steps against two levels and two corners.
    return bool(gain > (4 - (2 * len(cuts) + 1)) * np.log(n) * inflation)


def trend(y: Floats, ramp: Ramp) -> float:
    """How much better `ramp` explains `y` (n,) than a constant: n log of the ratio of errors, in log n.

    Divided by the inflation of the residuals' correlation, so that a level that wanders is no trend.
    """
    n = len(y)
    shape = np.clip((np.arange(n) - ramp.first) / (ramp.last - ramp.first), 0.0, 1.0)
    rest = y - ramp.before - (ramp.after - ramp.before) * shape
    power = float(rest @ rest)
    r = float(np.clip(rest[1:] @ rest[:-1] / power, 0.0, 0.9)) if power > 1e-12 else 0.0
    floor = 1e-12 * n
    return float(n * np.log((n * y.var() + floor) / (power + floor)) / np.log(n) * (1 - r) / (1 + r))
