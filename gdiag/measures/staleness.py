"""Columns that stop carrying information: constant ones, and values written again instead of measured."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gdiag.measures.baseline import resolution
from gdiag.measures.curves import Curve


@dataclass(frozen=True, slots=True)
class Flat:
    """A stretch of rows with one and the same value."""

    first: int
    """Row of the curve."""
    last: int
    value: float

    @property
    def rows(self) -> int:
        """Length of the stretch."""
        return self.last - self.first + 1


def longest_flat(curve: Curve) -> Flat | None:
    """The longest stretch of exactly equal values; None for an empty curve."""
    stretches = flats(curve, 1)
    return max(stretches, key=lambda flat: flat.rows, default=None)


def flats(curve: Curve, rows: int) -> list[Flat]:
    """Stretches of at least `rows` exactly equal values."""
    value = curve.value
    if not len(value):
        return []
    cut = np.flatnonzero(np.diff(value) != 0) + 1
    starts = np.concatenate([[0], cut])
    ends = np.concatenate([cut, [len(value)]]) - 1
    long = np.flatnonzero(ends - starts + 1 >= rows)
    return [Flat(int(starts[i]), int(ends[i]), float(value[starts[i]])) for i in long]


def stale(curve: Curve, rows: int) -> list[Flat]:
    """Stretches of `rows` or more equal values that rounding does not explain.

    Rounded columns (half of their values repeat) and columns that are mostly constant have none.
    """
    if len(curve) < 4 * rows or resolution(curve.value) > 0:
        return []
    found = flats(curve, rows)
    if sum(flat.rows for flat in found) > 0.5 * len(curve) or len(np.unique(curve.value)) < 0.5 * len(curve):
        return []
    return found
