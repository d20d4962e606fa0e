"""Scheduler state over restarts: whether the learning rate goes on where it was."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from gdiag.measures.curves import Path, Points
from gdiag.measures.schedule import Schedule
from gdiag.measures.trajectory import Restart

Kind = Literal["restarted", "behind", "advanced_twice", "changed"]

MISMATCH = 0.02
"""Relative difference of the learning rate at one step that no rounding explains."""
SLOPE_ROWS = 20


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A restart after which the learning rate is not where it was."""

    step: int
    """First logged step after the restart."""
    index: int
    """Its position in the learning-rate curve."""
    before: float
    """Learning rate due at that step."""
    after: float
    kind: Kind
    rewound: int = 0
    """Steps trained twice."""
    marked: bool = True
    """The log shows the restart; else the learning rate alone does, by beginning its warm-up again."""
    shift: int | None = None
    """Steps by which the new position differs from the old one."""
    factor: float | None = None
    """Schedule steps per training step after the restart."""


def mismatches(paths: Sequence[Path], restarts: Sequence[Restart], schedule: Schedule | None) -> list[Mismatch]:
    """Restarts whose learning rate does not continue the one before.

    Where the run was rewound, the rate logged before at the same step is the reference; else the schedule's own jump.
    """
    lr = paths[0].curve("lr").finite
    found = []
    for restart in restarts:
        i = int(np.searchsorted(lr.step, restart.step))
        if restart.from_start or i >= len(lr) or i < 3 or schedule is None:
            continue
        due = _due(paths, restart, schedule, lr, i)
        after = float(lr.value[i])
        if due is not None and abs(after - due) > MISMATCH * max(due, 1e-30) + 1.1 * schedule.quantum:
            found.append(_describe(restart, lr, i, due))
            continue
        factor = _speed(lr, i, schedule)
        if factor is not None:
            step = int(lr.step[i])
            found.append(Mismatch(step, i, after, after, "advanced_twice", restart.rewound, factor=factor))
    return found + _unmarked(lr, schedule, {m.step for m in found}) if schedule is not None else found


def _unmarked(lr: Points, schedule: Schedule, known: set[int]) -> list[Mismatch]:
    """Falls out of the schedule from which the rate climbs again row by row, as a warm-up does."""
    found = []
    for jump in schedule.jumps:
        low = jump.index + int(np.argmin(lr.value[jump.index : jump.index + 3]))
        climb = lr.value[low : low + 6]
        rising = len(climb) == 6 and bool((np.diff(climb) > 0).all()) and climb[-1] > 1.5 * climb[0]
        if jump.after < 0.75 * jump.before and rising and not known & {jump.step, int(lr.step[low])}:
            after = float(lr.value[low])
            found.append(Mismatch(jump.step, jump.index, jump.before, after, "restarted", marked=False))
    return found


def _due(paths: Sequence[Path], restart: Restart, schedule: Schedule, lr: Points, i: int) -> float | None:
    for path in paths[1:]:
        if path.kind == "tail" and path.judged_from == restart.step:
            old = path.curve("lr").finite
            k = int(np.searchsorted(old.step, lr.step[i]))
            if k < len(old) and old.step[k] == lr.step[i]:
                return float(old.value[k])
    jump = next((j for j in schedule.jumps if abs(j.index - i) <= 1), None)
    return jump.before if jump is not None else None


def _describe(restart: Restart, lr: Points, i: int, due: float) -> Mismatch:
    step, after = int(lr.step[i]), float(lr.value[i])
    rising = i + 3 < len(lr) and bool((np.diff(lr.value[i : i + 4]) > 0).all())
    if rising and after <= max(lr.value[: i + 1].min() * 3, 0.1 * due):
        return Mismatch(step, i, due, after, "restarted", restart.rewound)
    value, steps = lr.value[:i], lr.step[:i]
    peak = int(np.argmax(value))
    if after < value[-1]:
        return Mismatch(step, i, due, after, "changed", restart.rewound)
    # On the falling part a higher rate is an earlier place: the step that had it last.
    same = np.flatnonzero(value[peak:] >= after)
    if len(same) == 0 or after > 0.999 * value[peak]:
        return Mismatch(step, i, due, after, "changed", restart.rewound)
    return Mismatch(step, i, due, after, "behind", restart.rewound, shift=step - int(steps[peak + same[-1]]))


def _speed(lr: Points, i: int, schedule: Schedule) -> float | None:
    """Schedule steps per step after the restart when they are a multiple of those before, else None."""
    spans = [slice(i - 2 * SLOPE_ROWS, i - SLOPE_ROWS), slice(i - SLOPE_ROWS, i), slice(i, i + SLOPE_ROWS)]
    if i < 2 * SLOPE_ROWS or i + SLOPE_ROWS > len(lr):
        return None
    older, before, after = (float(np.polyfit(lr.step[s] - lr.step[i], lr.value[s], 1)[0]) for s in spans)
    moved = abs(before) * float(lr.step[i] - lr.step[i - SLOPE_ROWS])
    if moved < 5 * schedule.quantum + 1e-4 * schedule.peak or abs(older / before - 1) > 0.2:
        return None
    corner = [c for c in (schedule.warmup_end, schedule.decay_start, schedule.decay_end) if c is not None]
    if any(abs(c - int(lr.step[i])) <= 2 * SLOPE_ROWS * schedule.interval for c in corner):
        return None
    factor = after / before
    return factor if 1.8 < factor < np.inf and abs(factor - round(factor)) < 0.1 * factor else None
