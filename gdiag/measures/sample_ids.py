"""Sample ids along a run: seen again, left out, and events that come back at the same samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from gdiag.measures.curves import Curve

Kind = Literal["repeated_samples", "skipped_samples", "same_samples"]

ORDERED = 0.9
"""Share of rows whose ids go up, below which the loader shuffles and order proves nothing."""


@dataclass(frozen=True, slots=True)
class Breach:
    """A place where sample ids do not continue."""

    kind: Kind
    step: int
    first: int
    """First id concerned."""
    last: int
    """Last id concerned, exclusive."""
    at_restart: bool

    @property
    def samples(self) -> int:
        """Samples concerned."""
        return self.last - self.first


def breaches(start: Curve, end: Curve, restarts: Sequence[int], pauses: Sequence[int] = ()) -> list[Breach]:
    """Places where ids fall back or leap ahead.

    A fall back to the smallest ids away from a restart is a new epoch where no later id passes it, and left out; so is
    everything where ids do not rise in order.

    Args:
        start: sample_start along the trajectory.
        end: sample_end along the trajectory.
        restarts: first steps after restarts.
        pauses: first steps after pauses that may be the end of an epoch as well: ids only leap ahead at a restart.
    """
    if len(start) < 20:
        return []
    change = np.diff(start.value)
    if (change > 0).mean() < ORDERED:
        return []
    usual = float(np.median(change[change > 0]))
    pace = change / np.maximum(np.diff(start.step), 1)
    per_step = float(np.median(pace[change > 0]))
    lowest = float(start.value.min())
    found = []
    odd = np.flatnonzero((change <= 0) | (pace > 1.9 * per_step))
    for i in odd.tolist()[:200]:
        step = int(start.step[i + 1])
        every = max(1, int(start.step[i + 1] - start.step[i]))
        near, paused = (any(0 <= step - r <= 2 * every for r in places) for places in (restarts, pauses))
        reached = end.at(int(start.step[i]))
        until = max(float(start.value[i]), reached if reached is not None else start.value[i] + usual)
        # A new epoch ends where the one before did; ids that pass the place of the fall were not all read before it.
        beyond = float(start.value[i + 1 :].max()) > until + 2 * usual
        if change[i] <= 0 and (near or beyond or start.value[i + 1] > lowest + 2 * usual):
            found.append(Breach("repeated_samples", step, int(start.value[i + 1]), int(until), near))
        elif change[i] > 0 and (near or paused) and start.value[i + 1] > until:
            found.append(Breach("skipped_samples", step, int(until), int(start.value[i + 1]), near or paused))
    return found


def outlasts_training(time: Curve, step: int, since: int) -> bool:
    """Whether the pause before `step` took longer than the training since step `since`, as no evaluation of an epoch does."""
    i, first = (int(np.searchsorted(time.step, s)) for s in (step, since))
    if not first + 1 < i < len(time):
        return False
    return float(time.value[i] - time.value[i - 1]) > float(time.value[i - 1] - time.value[first])


def inside_epoch(epoch: Curve, step: int) -> bool:
    """Whether the epoch is logged on both sides of `step` and no new one begins there."""
    i = int(np.searchsorted(epoch.step, step))
    if not 2 <= i < len(epoch):
        return False
    before, after = float(epoch.value[i - 1]), float(epoch.value[i])
    pace = max(0.0, before - float(epoch.value[i - 2]))
    return int(before) == int(after) and int(before - pace) == int(after + pace)


@dataclass(frozen=True, slots=True)
class Return:
    """Two events at the same samples, or at the same place of two epochs."""

    step: int
    """The later event."""
    earlier: int
    first: int | None
    last: int | None
    """Ids in common; None when the place in the epoch tells."""


def returns(onsets: Sequence[int], start: Curve, end: Curve, epoch: Curve) -> list[Return]:
    """Events whose onset batch overlaps that of an earlier event, by ids or by the place in the epoch.

    The place in the epoch counts from 500 rows an epoch on: then two of ten events meet by chance in one run of ten.
    """
    windows = [(s, start.at(s), end.at(s)) for s in onsets]
    found = []
    for i, (step, first, last) in enumerate(windows):
        if first is None or last is None:
            continue
        for earlier, other_first, other_last in windows[:i]:
            if other_first is not None and other_last is not None and first < other_last and other_first < last:
                found.append(Return(step, earlier, int(max(first, other_first)), int(min(last, other_last))))
                break
    if found or len(epoch) < 2 or len(start):
        return found
    per_row = float(np.median(np.diff(epoch.value)))
    if not 0 < per_row <= 1 / 500:
        return []
    places = [(s, epoch.at(s)) for s in onsets]
    for i, (step, place) in enumerate(places):
        for earlier, other in places[:i]:
            if place is None or other is None or int(place) == int(other):
                continue
            if abs(place % 1.0 - other % 1.0) <= 1.5 * per_row:
                found.append(Return(step, earlier, None, None))
                break
    return found
