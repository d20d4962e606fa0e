"""Slowdowns: changes of step time and groups of slow steps, with the time they cost and the part that holds it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal

import numpy as np

from gdiag.measures import levels, slow_steps
from gdiag.measures.curves import Floats
from gdiag.measures.levels import Kind
from gdiag.measures.segments import Ints
from gdiag.measures.slow_steps import Rhythm, SlowSteps
from gdiag.measures.step_time import Bools, Share, StepTimes, excess_share

ALIKE: Final = 0.02
"""Relative difference below which steps have the same work."""


@dataclass(frozen=True)
class Slowdown:
    """A stretch of steps that take longer than before; indices into StepTimes."""

    kind: Kind | Literal["slow steps", "rhythm"]
    start: int
    end: int
    """Inclusive."""
    before: float
    """Usual step time before [s]."""
    after: float
    """Step time at the new level, at the end of a drift, or the median slow step [s]."""
    worst: float
    """Longest step concerned [s]."""
    share: Share
    """The part of the step that holds the added time."""
    shares: dict[str, float]
    seconds_lost: float
    """Beyond what more work per step accounts for; in `StepTimes.seconds`, whatever they are of."""
    load_ratio: float | None
    """Work per step inside over before; None where nothing says how much a step has to do."""
    certain: bool = True
    rows: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    """The slow steps, for slow steps and rhythms."""
    added: Floats = field(default_factory=lambda: np.empty(0))
    """What each of `rows` takes beyond the usual."""
    bad_values: float = 0.0
    """Share of the slow steps with a non-finite loss or gradient or a skipped update."""

    @property
    def ratio(self) -> float:
        """after / before."""
        return self.after / self.before


@dataclass(frozen=True)
class StepTimeView:
    """Everything about one run's step time."""

    times: StepTimes
    noise: float
    changes: tuple[Slowdown, ...]
    """Shifts, bumps and drifts upwards, in order."""
    rhythms: tuple[tuple[Rhythm, Slowdown], ...]
    slow: tuple[Slowdown, ...]
    """Slow steps outside every rhythm: one group per part of the step that holds the time."""
    interval: float
    """Steps per logged row."""


def view(times: StepTimes, *, floor: float = 0.05, ratio: float = 1.25, z: float = 6.0) -> StepTimeView:
    """Changes, rhythms and slow steps of a run's step times."""
    interval = float(np.median(np.diff(times.step))) if len(times) > 1 else 1.0
    found = slow_steps.slow_steps(times, ratio=ratio, z=z)
    plain = times.judged & ~times.bad_values
    if found.dense is not None:
        plain[found.dense.rows] = False
    usual = plain.copy()
    usual[found.at] = False
    found_levels = levels.find(times.seconds, plain, floor=floor)
    risen = tuple(
        _changed(times, c, interval, usual) for c in found_levels.changes if c.kind != "wander" and c.ratio > 1
    )
    regular = slow_steps.rhythms(times, found)
    rest = found.at
    for rhythm in regular:
        rest = np.setdiff1d(rest, rhythm.hits)
    return StepTimeView(
        times, found_levels.noise, risen,
        tuple((r, _slow(times, found, r.hits, "rhythm")) for r in regular),
        tuple(_slow(times, found, rows, "slow steps") for rows in _by_part(times, found, rest)),
        interval,
    )  # fmt: skip


def _changed(times: StepTimes, change: levels.Change, interval: float, plain: Bools) -> Slowdown:
    index = np.arange(len(times))
    inside = (index >= change.start) & (index <= change.end)
    if change.kind == "drift":  # the part that drifts is clearest where it has drifted furthest
        inside &= index >= change.end - max(10, (change.end - change.start) // 4)
    before = times.judged & (index < change.start) & (index >= change.start - 500)
    if not before.any():
        before = index <= change.start
    share, shares = excess_share(times, inside, before)
    stretch = times.seconds[change.start : change.end + 1]
    load = _load_ratio(times, inside, before)
    added = stretch - change.before * max(1.0, load or 1.0)
    own = plain[change.start : change.end + 1]
    if own.mean() > 0.5:  # single slow steps within it have a cost of their own; of a short stretch all are slow steps
        added = np.where(own, added, np.median(added[own]))
    lost = float(np.sum(added))
    return Slowdown(
        change.kind, change.start, change.end, change.before, change.after, float(np.max(stretch)), share, shares,
        max(0.0, lost) * interval, load, change.certain,
    )  # fmt: skip


def _slow(times: StepTimes, found: SlowSteps, rows: Ints, kind: Literal["slow steps", "rhythm"]) -> Slowdown:
    inside = np.zeros(len(times), dtype=bool)
    inside[rows] = True
    usual = times.judged & ~inside
    share, shares = excess_share(times, inside, usual if usual.any() else ~inside)
    seconds = times.seconds[rows]
    return Slowdown(
        kind, int(rows[0]), int(rows[-1]), float(np.median(found.usual[rows])), float(np.median(seconds)),
        float(np.max(seconds)), share, shares, float(np.sum(seconds - found.usual[rows])),
        _load_ratio(times, inside, usual), rows=rows, added=seconds - found.usual[rows], bad_values=float(np.mean(times.bad_values[rows])),
    )  # fmt: skip


def _by_part(times: StepTimes, found: SlowSteps, rows: Ints) -> list[Ints]:
    """Slow steps grouped by the part that holds their time; non-finite or skipped steps apart."""
    if not len(rows):
        return []
    added = times.seconds[rows] - found.usual[rows]
    label = np.full(len(rows), "", dtype=object)
    for name, values in times.parts.items():
        usual = np.nanmedian(values)
        mine = (values[rows] - usual) >= 0.6 * added
        label[mine & np.isfinite(values[rows])] = name
    label[times.bad_values[rows]] = "bad values"
    return [rows[label == name] for name in dict.fromkeys(label.tolist())]


def _load_ratio(times: StepTimes, inside: Bools, before: Bools) -> float | None:
    """Work per step inside over before; None also where it falls on as an average over the past would after a slowdown."""
    if times.load is None:
        return None
    now, then = (load[np.isfinite(load)] for load in (times.load[inside], times.load[before]))
    if not len(now) or not len(then):
        return None
    parts = [float(np.median(part)) for part in np.array_split(now, 4) if len(part)]
    ratio = float(np.median(now) / np.median(then))
    if ratio > 1 + ALIKE and parts[-1] < parts[0] / (1 + ALIKE):
        return None
    return ratio if abs(ratio - 1) > ALIKE else 1.0
