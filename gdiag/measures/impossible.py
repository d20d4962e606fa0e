"""Values that a quantity cannot take: a time or a rate that is NaN, infinite or below zero."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from gdiag.measures.curves import Curve, Floats, Points

Kind = Literal["NaN", "infinite", "negative"]
ROUNDING: Final = 1e-6
"""Share of the largest value within which a negative one is a zero that was computed: a cosine ends at -1e-20."""
ROWS: Final = 10
"""Values and NaN needed before NaN may stand for "no value"."""
TURNS: Final = 20
"""Changes between values and NaN from which they come in turn."""


@dataclass(frozen=True, slots=True)
class Impossible:
    """The rows of a column whose value cannot be."""

    kind: Kind
    """What most of them are."""
    points: Points
    """In order of step, at least one."""
    logged: int
    """All rows of the column, these included."""

    @property
    def everywhere(self) -> bool:
        """Whether the column holds nothing else."""
        return len(self.points) == self.logged


def impossible(curve: Curve, *, nonfinite: bool = True) -> Impossible | None:
    """Values of a column of times, rates, sizes or norms that cannot be; None where there are none.

    NaN that stands for "no value" all over the log, in turn with values, is none.

    Args:
        curve: the column.
        nonfinite: whether NaN and infinities count, or negative values alone.
    """
    finite = curve.finite
    floor = -ROUNDING * float(np.abs(finite.value).max(initial=0.0))
    parts = [finite.keep(finite.value < min(floor, 0.0))]
    if nonfinite and not stands_for_nothing(curve):
        parts.append(curve.nonfinite)
    step = np.concatenate([p.step for p in parts])
    if not len(step):
        return None
    order = np.argsort(step, kind="stable")
    fields = ("step", "value", "source", "line")
    points = Points(*(np.concatenate([getattr(p, name) for p in parts])[order] for name in fields))
    return Impossible(_kind(points.value), points, len(finite) + len(curve.nonfinite))


def stands_for_nothing(curve: Curve) -> bool:
    """Whether NaN stands for "no value" in this column: in turn with values over the whole log."""
    bad, good = curve.nonfinite, curve.finite
    if len(good) < ROWS or len(bad) < ROWS or not np.isnan(bad.value).all():
        return False
    every = np.sort(np.concatenate([bad.step, good.step]))
    turns = int(np.sum(np.diff(np.isin(every, bad.step).astype(int)) != 0))
    span = every[-1] - every[0]
    spread = bad.step[0] < every[0] + 0.1 * span and good.step[-1] > every[-1] - 0.1 * span
    return bool(spread and turns >= TURNS and turns >= 0.5 * min(len(bad), len(good)))


def _kind(values: Floats) -> Kind:
    counts: dict[Kind, int] = {
        "negative": int((values < 0).sum()) - int(np.isneginf(values).sum()),
        "NaN": int(np.isnan(values).sum()),
        "infinite": int(np.isinf(values).sum()),
    }
    return max(counts, key=lambda kind: counts[kind])
