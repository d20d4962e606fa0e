"""Scheduler state over restarts: whether the learning rate goes on where it was."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np

from gdiag.measures.curves import Path, Points
from gdiag.measures.schedule import Schedule
from gdiag.measures.trajectory import Restart

Kind = Literal["restarted", "behind", "ahead", "advanced_twice", "changed"]

MISMATCH = 0.02
"""Relative difference of the learning rate at one step that no rounding explains."""
SLOPE_ROWS = 20
KINK_ROWS = (3, 6, 12, 25, 50, 100, 200)
"""Rows on either side of a kink over which the rate must move by QUANTA printed units; the fewest that do are used."""
QUANTA = 20.0
WHOLE = 0.03
"""How far from a whole number a kink's factor may be: schedulers are stepped a whole number of times."""
MOST_TIMES = 64
EXPLAINED = 0.005
"""Error of a fitted schedule below which it holds no kink."""


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
    if schedule is None:
        return found
    found += _unmarked(lr, schedule, {m.step for m in found})
    known = [m.step for m in found]
    near = 2 * SLOPE_ROWS * schedule.interval
    return found + [k for k in _kinks(lr, schedule) if all(abs(k.step - step) > near for step in known)]


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


def _kinks(lr: Points, schedule: Schedule) -> list[Mismatch]:
    """Rows from which the rate moves a whole number of times as fast as before, without a jump and at no corner of the plan."""
    x, y = lr.step.astype(np.float64), lr.value
    if len(y) < 4 * SLOPE_ROWS or schedule.shape == "restarts" or schedule.error < EXPLAINED:
        return []
    found: list[Mismatch] = []
    corners = [schedule.warmup_end, schedule.decay_start, schedule.decay_end, *schedule.changes]
    corners += [jump.step for jump in schedule.jumps]
    for k in [k for k in KINK_ROWS if 8 * k <= len(y)]:
        at = np.arange(2 * k, len(y) - 2 * k)
        older, before, after, later = (
            (y[at + b] - y[at + a]) / (x[at + b] - x[at + a]) for a, b in ((-2 * k, -k), (-k, 0), (0, k), (k, 2 * k))
        )
        least = QUANTA * schedule.quantum + 1e-6 * schedule.peak
        with np.errstate(divide="ignore", invalid="ignore"):
            # Both slopes carried on to the row itself: a curve bends, and from there on it bends faster.
            factor = (1.5 * after - 0.5 * later) / (1.5 * before - 0.5 * older)
            straight = (np.abs(older / before - 1) < 0.1) & (np.abs(later / after - 1) < 0.1)
        factor = np.where((factor > 1.5) & (factor < MOST_TIMES), factor, 0.0)
        whole = np.abs(factor - np.rint(factor)) < WHOLE * factor
        for j in at[whole & straight & (np.abs(y[at] - y[at - k]) >= least)].tolist():
            step, reach = int(lr.step[j]), 2 * k * schedule.interval
            known = [m.step for m in found]
            if all(c is None or abs(c - step) > reach for c in (*corners, *known)):
                times = float(np.rint(factor[j - 2 * k]))
                found.append(Mismatch(step, j, float(y[j]), float(y[j]), "advanced_twice", marked=False, factor=times))
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
        shift = _ahead_by(lr, i, due)
        return Mismatch(step, i, due, after, "ahead" if shift else "changed", restart.rewound, shift=shift)
    # On the falling part a higher rate is an earlier place: the step that had it last.
    same = np.flatnonzero(value[peak:] >= after)
    if len(same) == 0 or after > 0.999 * value[peak]:
        return Mismatch(step, i, due, after, "changed", restart.rewound)
    return Mismatch(step, i, due, after, "behind", restart.rewound, shift=step - int(steps[peak + same[-1]]))


def _ahead_by(lr: Points, i: int, due: float) -> int | None:
    """Steps of the schedule that were left out, where the rate falls about as steeply on both sides; else None."""
    k = min(SLOPE_ROWS, i - 1, len(lr) - 1 - i)
    if k < 3:
        return None
    before, after = (
        float((lr.value[b] - lr.value[a]) / (lr.step[b] - lr.step[a])) for a, b in ((i - 1 - k, i - 1), (i, i + k))
    )
    if before >= 0 or not 0.4 < after / before < 2.5:
        return None
    return max(1, round((due - float(lr.value[i])) / (-0.5 * (before + after))))


def _speed(lr: Points, i: int, schedule: Schedule) -> float | None:
    """Schedule steps per step after the restart when they are a multiple of those before, else None.

    The slopes on both sides are carried on to the restart itself, from the fewest rows that show them: a curve bends, and
    after the restart it bends faster.
    """
    x, y = lr.step.astype(np.float64), lr.value
    for k in KINK_ROWS:
        if i < 2 * k + 1 or i + 2 * k >= len(y):
            return None
        # The rows on either side of the restart count to their own side: what lies between them holds steps of both.
        marks = [i - 1 - 2 * k, i - 1 - k, i - 1, i, i + k, i + 2 * k]
        older, before, _, after, later = (float((y[b] - y[a]) / (x[b] - x[a])) for a, b in pairwise(marks))
        moved = abs(float(y[i - 1] - y[i - 1 - k]))
        if moved < max(QUANTA * schedule.quantum, 1e-4 * schedule.peak):
            continue
        corners = (schedule.warmup_end, schedule.decay_start, schedule.decay_end)
        near = any(c is not None and abs(c - int(lr.step[i])) <= 2 * k * schedule.interval for c in corners)
        if near or not after or abs(older / before - 1) > 0.2 or abs(later / after - 1) > 0.3:
            return None
        factor = (1.5 * after - 0.5 * later) / (1.5 * before - 0.5 * older)
        return factor if 1.8 < factor < MOST_TIMES and abs(factor - round(factor)) < 0.1 * factor else None
    return None
