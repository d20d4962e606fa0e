"""fp16 loss scale and skipped steps: ordinary back-off told apart from collapse, stale norms told apart from values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gdiag.measures.curves import Curve, Floats
from gdiag.measures.segments import Ints

GAP_ROWS = 5
"""Rows without a halving that end a burst."""
SEARCH_ROWS = 50
"""Rows at the start in which the scaler looks for its range from above."""


@dataclass(frozen=True, slots=True)
class Burst:
    """Steps skipped, or halvings of the scale, one after the other."""

    step: int
    """First step concerned."""
    last_step: int
    halvings: float
    """Times the scale was halved."""
    skips: int
    """Steps skipped, as far as the log says."""
    scale_before: float | None
    scale_after: float | None
    at_start: bool
    """It begins while the scaler still looks for its range."""
    to_the_end: bool
    """It lasts until the log ends."""


@dataclass(frozen=True, slots=True)
class Skipping:
    """Everything about skipped steps in a run."""

    bursts: tuple[Burst, ...]
    """Bursts of at least three halvings or skips."""
    skips: float
    halvings: float
    steps: int
    """Steps that the log spans."""
    lowest: float | None
    """Lowest loss scale."""
    first_skip: int | None
    last_skip: int | None

    @property
    def rate(self) -> float:
        """Share of steps skipped, or halved where skips are not logged."""
        return max(self.skips, self.halvings) / max(1, self.steps)


def skipping(scale: Curve, skipped: Curve) -> Skipping | None:
    """Bursts and rate of skipped steps; None when neither column tells of any."""
    steps, halved, skips = _events(scale, skipped)
    if not len(steps):
        return None
    active = (halved > 0) | (skips > 0)
    if not active.any():
        return None
    rows = np.flatnonzero(active)
    cuts = np.flatnonzero(np.diff(rows) > GAP_ROWS) + 1
    bursts = [b for part in np.split(rows, cuts) if (b := _burst(part, steps, halved, skips, scale)) is not None]
    return Skipping(
        tuple(bursts), float(skips.sum()), float(halved.sum()), int(steps[-1] - steps[0] + 1),
        float(scale.value.min()) if len(scale) else None, int(steps[rows[0]]), int(steps[rows[-1]]),
    )  # fmt: skip


def _events(scale: Curve, skipped: Curve) -> tuple[Ints, Floats, Floats]:
    """Steps of either column, halvings on arrival at each, and skips in each."""
    steps = np.union1d(scale.step, skipped.step)
    halved, skips = np.zeros(len(steps)), np.zeros(len(steps))
    if len(scale) > 1:
        value = np.maximum(scale.value, 1e-12)
        halved[np.searchsorted(steps, scale.step[1:])] = np.maximum(0.0, -np.diff(np.log2(value)))
    if len(skipped):
        skips[np.searchsorted(steps, skipped.step)] = np.maximum(0.0, skipped.value)
    return steps, halved, skips


def _burst(rows: NDArray[np.int64], steps: Ints, halved: Floats, skips: Floats, scale: Curve) -> Burst | None:
    halvings, count = float(halved[rows].sum()), int(skips[rows].sum())
    if max(halvings, count) < 3:
        return None
    first, last = int(rows[0]), int(rows[-1])
    i = int(np.searchsorted(scale.step, steps[first]))
    return Burst(
        int(steps[first]), int(steps[last]), halvings, count,
        float(scale.value[max(0, i - 1)]) if len(scale) else None, scale.at(int(steps[last])),
        first < SEARCH_ROWS, last >= len(steps) - 2,
    )  # fmt: skip


def stale_norms(grad: Curve, skipped: Curve) -> Ints:
    """Steps whose gradient norm is a stale repeat: exactly the row before it, in a skipped step or three times or more.

    Megatron prints the last norm again while it skips; such rows are no measurements (bigscience tr8b chronicles).
    """
    if len(grad) < 2:
        return np.empty(0, dtype=np.int64)
    same = np.concatenate(([False], grad.value[1:] == grad.value[:-1]))
    in_skip = np.isin(grad.step, skipped.step[skipped.value > 0])
    before, after = np.roll(same, 1), np.roll(same, -1)
    before[0] = after[-1] = False
    rows: Ints = grad.step[same & (in_skip | ((before | after) & (len(np.unique(grad.value)) > 0.2 * len(grad))))]
    return rows
