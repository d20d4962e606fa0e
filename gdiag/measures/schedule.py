"""Learning-rate schedules: recognise the plan behind a logged `lr` column and the jumps that no plan explains.

Works on what logs hold: any log interval, values rounded to a few digits, warm-ups shorter than the interval,
runs cut off before the schedule ends. Everything is relative to the schedule's own peak and to neighbouring rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gdiag.measures.schedule_plan import CONSTANT, Shape, carried_on, plan
from gdiag.measures.shapes import Decay

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
LEAST_PEAK = 1e-30
"""Below this a learning rate is zero."""
JUMP = 0.05
"""Least relative change between two rows that can be a jump."""
GAP = 20.0
"""Usual distances between rows from which a distance is a gap."""
STEEPER = 5.0
"""How many times steeper than its neighbours a change must be to be a jump."""

RANGE, RANGE_ROWS = 100.0, 20
"""Factor from the first to the last rate, and rows, from which an exponential rise is a range test."""


@dataclass(frozen=True, slots=True)
class Jump:
    """A change of the learning rate between two logged rows that the schedule does not explain."""

    step: int
    """First row with the new value."""
    before: float
    """What the schedule would have given there: the last value, carried on along its own slope."""
    after: float
    last_step: int
    """Last row before the value returns to the schedule, or the last row of the log."""
    returns: bool
    index: int
    """Position of `step` in the arrays given."""

    @property
    def ratio(self) -> float:
        """After over before; infinite from zero."""
        return self.after / self.before if self.before > 0 else float("inf")


@dataclass(frozen=True, slots=True)
class Schedule:
    """The plan behind a learning-rate column."""

    shape: Shape
    decay: Decay | None
    """Curve of the falling part, where there is one."""
    first_step: int
    last_step: int
    warmup_end: int | None
    """First row at the peak after a rise from the first row; None when the log starts at the peak or falling."""
    peak: float
    peak_step: int
    floor: float
    """Lowest value after the peak, jumps left out."""
    decay_start: int | None
    """Last row at the peak before the fall."""
    decay_end: int | None
    """First row at the floor when the schedule stays there."""
    changes: tuple[int, ...]
    """Planned drops of a step schedule, or starts of new cycles."""
    jumps: tuple[Jump, ...]
    error: float
    interval: float
    """Median distance of rows in steps."""
    quantum: float
    """Spacing of the printed values."""

    @property
    def warmup_steps(self) -> int:
        """Steps from the first row to the peak; 0 without a warm-up."""
        return 0 if self.warmup_end is None else self.warmup_end - self.first_step

    def settings(self) -> dict[str, str | int | float]:
        """What the column says about the run's configuration; steps it does not show are left out."""
        steps = {"lr_decay_start": self.decay_start, "lr_decay_end": self.decay_end}
        return {
            "lr_schedule": self.shape, "lr_warmup_steps": self.warmup_steps, "lr_peak": self.peak, "lr_floor": self.floor,
            **{name: step for name, step in steps.items() if step is not None},
        }  # fmt: skip


def recognise(step: Ints, lr: Floats) -> Schedule | None:
    """The schedule behind finite learning rates at increasing steps; None below 3 rows or when nothing is positive."""
    if len(lr) < 3 or lr.max() < LEAST_PEAK:
        return None
    kept = _stairs(step, lr)
    x, y = step[kept].astype(np.float64), lr[kept]
    quantum = _quantum(y)
    jumps = _steep(x, y, quantum)
    rise = _warmup(y, jumps, quantum)
    jumps = [i for i in jumps if i >= rise or (2 < i < rise)]
    inside = [i for i in jumps if i >= rise]
    found = plan(x, y, rise, inside, quantum)
    early = [(i, None) for i in jumps if i < rise]
    piece = y[found.start : found.stop]
    top = found.start + int(np.argmax(piece))
    rows = np.flatnonzero(kept)
    fit = found.fit
    return Schedule(
        shape=_rising(y) if rise == len(y) - 1 else found.shape, decay=fit.shape if fit else None,
        first_step=int(step[0]), last_step=int(step[-1]),
        warmup_end=int(x[rise]) if rise > 0 else None,
        peak=float(y[top]), peak_step=int(x[top]), floor=float(piece.min()),
        decay_start=None if found.decay_start is None else int(x[found.decay_start]),
        decay_end=None if found.decay_end is None else int(x[found.decay_end]),
        changes=tuple(int(x[i + 1]) for i in found.planned),
        jumps=tuple(_jump(x, y, rows, i, back) for i, back in (*early, *found.unexplained)),
        error=fit.error if fit else 0.0, interval=float(np.median(np.diff(step))), quantum=quantum,
    )  # fmt: skip


def _rising(y: Floats) -> Shape:
    """The plan of a rate that rises to the last row: by the same factor from row to row it looks for the rate at which
    training breaks (a range test, Smith 2017); a warm-up rises by the same amount, or slower and slower."""
    if len(y) < RANGE_ROWS or y[0] <= 0 or y[-1] < RANGE * y[0]:
        return "warmup"
    factors = np.diff(np.log(y))
    usual = float(np.median(factors))
    return "range-test" if (np.abs(factors - usual) <= 0.2 * usual).mean() >= 0.9 else "warmup"


def _stairs(step: Ints, lr: Floats) -> NDArray[np.bool_]:
    """Rows that carry information: where the rate changes only every k rows, the first row of each level."""
    every = np.ones(len(lr), dtype=bool)
    first = np.concatenate(([True], lr[1:] != lr[:-1]))
    starts = np.flatnonzero(first)
    if len(starts) < 3 or len(starts) > 0.7 * len(lr):
        return every
    lengths = np.diff(step[starts])
    usual = float(np.median(lengths))
    rows = np.diff(starts)
    regular = np.abs(lengths - usual) <= max(1.0, 0.1 * usual)
    few = len(starts) < 10
    if regular.mean() < (1.0 if few else 0.8) or np.median(rows) < (3 if few else 2) or _equal_drops(lr[starts]):
        return every
    since = step - np.maximum.accumulate(np.where(first, step, step[0]))
    kept: NDArray[np.bool_] = first | (since % max(1, round(usual)) < np.median(np.diff(step)))
    return kept


def _equal_drops(levels: Floats) -> bool:
    """Whether every level is the same share of the one before, more than a twentieth lower: a step schedule.

    A curve refreshed once an epoch falls by other shares early and late, or rises first.
    """
    if not (levels > 0).all():
        return False
    drops = -np.diff(np.log(levels))
    usual = float(np.median(drops))
    return usual > JUMP and bool((np.abs(drops - usual) <= 0.2 * usual).mean() > 0.8)


def _quantum(y: Floats) -> float:
    """Spacing of the printed values: of neighbours where values repeat, else the decimal unit they are multiples of."""
    peak = float(y.max())
    moving = y[(y < peak) & (y > y.min())]
    distinct = np.unique(moving)
    if len(distinct) >= 20 and len(moving) > 1.3 * len(distinct):
        return float(np.diff(distinct).min())
    top = int(np.floor(np.log10(peak)))
    for digits in range(1, 9):
        unit = 10.0 ** (top + 1 - digits)
        if np.abs(y / unit - np.rint(y / unit)).max() < 1e-6 * 10.0**digits:
            return unit
    return 0.0


def _steep(x: Floats, y: Floats, quantum: float) -> list[int]:
    """Changes i → i+1 that are much steeper than the three before and the three after."""
    change = np.diff(y)
    slope = np.abs(change / np.diff(x))
    padded = np.concatenate((np.full(3, np.nan), slope, np.full(3, np.nan)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, 3)
    n = len(slope)
    before, after = _median3(windows[:n]), _median3(windows[4 : 4 + n])
    near = np.fmax(np.nan_to_num(before), np.nan_to_num(after)) * np.diff(x)
    larger = np.maximum(y[1:], y[:-1])
    size = np.abs(change)
    steep = (size > STEEPER * near + 1.5 * quantum) & (size > JUMP * larger)
    # Over a gap in the log a falling curve goes its way unseen; only what no curve does in that time counts.
    gap = np.diff(x) > GAP * np.median(np.diff(x))
    return [int(i) for i in np.flatnonzero(steep & (~gap | (size > 0.67 * larger)))]


def _median3(windows: Floats) -> Floats:
    """Median of three, NaN left out, NaN where all are."""
    ordered = np.sort(windows, axis=1)
    count = (~np.isnan(windows)).sum(axis=1)
    middle = np.where(
        count == 3, ordered[:, 1], np.where(count == 2, (ordered[:, 0] + ordered[:, 1]) / 2, ordered[:, 0])
    )
    return np.asarray(middle, dtype=np.float64)


def _warmup(y: Floats, jumps: list[int], quantum: float) -> int:
    """Index of the first row at the peak of the rise that begins at the first row; 0 without one."""
    falls = np.flatnonzero(y[1:] < y[:-1] - 0.5 * quantum)
    end = int(falls[0]) if len(falls) else len(y) - 1
    for i in jumps:
        if 3 <= i < end and np.ptp(y[i - 3 : i + 1]) <= max(2 * quantum, CONSTANT * y[i]):
            end = i
            break
    top = float(y[: end + 1].max())
    first = int(np.argmax(y[: end + 1] >= top * (1 - 1e-6) - 0.5 * quantum))
    # A first row a little below the rest is rounding or averaging, not a warm-up.
    return first if y[0] < 0.97 * top else 0


def _jump(x: Floats, y: Floats, rows: Ints, i: int, back: int | None) -> Jump:
    return Jump(
        step=int(x[i + 1]), before=carried_on(x, y, i, i + 1), after=float(y[i + 1]),
        last_step=int(x[back] if back is not None else x[-1]), returns=back is not None, index=int(rows[i + 1]),
    )  # fmt: skip
