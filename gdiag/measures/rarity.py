"""How rare a value is among the other values of the same run, also beyond the farthest of them.

Rarity is -ln of a share: of rows that reach a height, of windows that are as surprising.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from gdiag.measures.baseline import Floats

FARTHEST: Final = 10
"""So many of the farthest others tell how the rest thins out."""
OTHERS: Final = (10, 40)
"""So many of the rarest others tell how they thin out: hard batches show in the first few, correlated noise in many."""
PRIOR: Final = 2.0
"""Others that every tail is given beforehand, so that few prove little: …"""
PRIOR_LOG: Final = 0.6
"""… their log distances from the tail's start (an exponent near 3.3) …"""
PRIOR_EXCESS: Final = 4.0
"""… and their distances, in robust standard deviations."""
LEAST_START: Final = 0.5


@dataclass(frozen=True, slots=True)
class Column:
    """Values that are held against one another."""

    held: Floats
    """Smallest first."""

    @classmethod
    def of(cls, value: Floats) -> Column:
        """The column of `value`, (n,), finite, in any order."""
        return cls(np.sort(value))

    def rarity(self, value: Floats) -> Floats:
        """-ln of the share of values that reach each of `value`, (n,), which are among them."""
        order = np.argsort(value)  # looking up in order is several times as fast
        reach = np.empty(len(value))
        reach[order] = len(self.held) - np.searchsorted(self.held, value[order], side="left")
        rarity: Floats = np.log(len(self.held) / np.maximum(reach, 1.0))
        return rarity

    def beyond(self, value: float, without: Floats) -> float:
        """-ln of the share of values, less those `without`, that reach `value`.

        Beyond the tenth farthest it is extrapolated: the geometric mean of a power law (Hill's estimate) and of an
        exponential tail, for tails of real noise lie between the two.
        """
        rest = np.maximum(self._top(FARTHEST, without), LEAST_START)
        start = min(value, float(rest[-1]))
        further = _predictive(np.log(rest / rest[-1]), PRIOR_LOG, float(np.log(max(1.0, value / rest[-1]))))
        further += _predictive(rest - rest[-1], PRIOR_EXCESS, value - start)
        return float(np.log((len(self.held) - len(without) + 1) / (self._reach(start, without) + 1))) + further / 2

    def thinned(self, rarity: float, without: Floats) -> float:
        """What a rarity that assumes independence is worth, where the column holds the same figure of all, less `without`.

        Were it true, the rarest others would thin out e-fold with each unit. Where they do so more slowly, because what
        was taken for independent goes together, their own rate is followed.
        """
        reach, count = self._reach(rarity, without), len(self.held)
        if reach >= FARTHEST:
            return min(rarity, float(np.log(count / (reach + 1))))
        worth = rarity
        for many in OTHERS:
            top = self._top(many, without)
            expected = float(np.log(len(top) / np.arange(1, len(top) + 1)).sum())
            slower = (float((top - top[-1]).sum()) + PRIOR) / (expected + PRIOR)
            if slower > 1:
                worth = min(worth, float(np.log(count / (len(top) + 1))) + (rarity - float(top[-1])) / slower)
        return worth

    def _reach(self, value: float, without: Floats) -> int:
        """How many values, less those `without`, are `value` and more."""
        reach = len(self.held) - int(np.searchsorted(self.held, value, side="left"))
        return reach - int(np.count_nonzero(without >= value))

    def _top(self, many: int, without: Floats) -> Floats:
        """The largest `many` values, less those `without`."""
        top = self.held[::-1][: many + len(without)].tolist()
        for other in without.tolist():
            if other in top:
                top.remove(other)
        return np.array(top[:many])


def _predictive(excess: Floats, prior: float, further: float) -> float:
    """-ln of the chance that an exponential variable seen with `excess` (k,), the least of them 0, exceeds `further`.

    Its mean is not known: with PRIOR values of sum `prior` seen beforehand, the chance is a power, not an exponential.
    """
    total = float(excess.sum()) + prior
    return (len(excess) - 1 + PRIOR) * float(np.log1p(further / total))
