"""Which of many runs have the same losses on the same steps.

Every pair is not held against each other: of the runs that log at even steps a few places are looked at, all runs at once, those
of the others are found by some of their points; only those that are alike there are compared step by step.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from gdiag.ingesters.same_losses import AGREE, LEAST, PROBES, Curve, Losses, Steps, least_shared, nearly, same

_SAMPLE: Final = 96
"""Points by which a run that logs at uneven steps is found."""
_CROWD: Final = 8
"""Runs that are alike at a few places, above which more places are looked at before all of them."""
_SLACK: Final = 2.5
"""Standard deviations that the share of points with the same loss may be off among some."""
_MOST: Final = 1 << 21
"""Losses that are held against a run's at a time."""


@dataclass(slots=True)
class _Grid:
    """Curves that log at the same evenly spaced steps as far as they go, one behind the other."""

    first: int
    interval: int
    numbers: list[int] = field(default_factory=list)
    spans: Steps = field(default_factory=lambda: np.empty((2, 16), np.int64))
    """(steps, place in losses) of each."""
    losses: Losses = field(default_factory=lambda: np.empty(1 << 12))
    used: int = 0

    def add(self, number: int, losses: Losses) -> None:
        """Another curve."""
        if len(self.numbers) == self.spans.shape[1]:
            self.spans = np.concatenate([self.spans, np.empty_like(self.spans)], axis=1)
        while self.used + len(losses) > len(self.losses):
            self.losses = np.concatenate([self.losses, np.empty_like(self.losses)])
        self.spans[:, len(self.numbers)] = len(losses), self.used
        self.losses[self.used : self.used + len(losses)] = losses
        self.numbers.append(number)
        self.used += len(losses)

    def likely(self, curve: Curve) -> list[int]:
        """Those that may be the same: enough steps in common, and no other losses at the places looked at."""
        steps, losses = curve
        on = steps[(steps - self.first) % self.interval == 0]
        count = self.spans[0, : len(self.numbers)]
        past = np.searchsorted(on, self.first + (count - 1) * self.interval, side="right")
        enough = past - np.searchsorted(on, self.first) >= least_shared(count, len(steps))
        rows = np.flatnonzero(enough)
        few = len(steps) // PROBES
        if few > 1:
            shared, close = self._close(rows, (steps[::few], losses[::few]))
            rows = rows[(shared < PROBES // 2) | (close >= 0.5 * AGREE)]
        if len(steps) > 4 * _SAMPLE and len(rows) > _CROWD:
            shared, close = self._close(rows, _some(curve, _SAMPLE))
            rows = rows[(shared < PROBES) | _may_be(shared, close * shared, whole=False)]
        if len(rows) * len(steps) <= _MOST:
            shared, close = self._close(rows, curve)
            rows = rows[(shared >= least_shared(count[rows], len(steps))) & (close >= AGREE)]
        return [self.numbers[n] for n in rows.tolist()]

    def _close(self, rows: Steps, curve: Curve) -> tuple[Steps, Losses]:
        """How many of the steps each of some curves has, and the share of them at which the losses are the same."""
        count, place = self.spans[:, rows, None]
        at = (curve[0] - self.first) // self.interval
        here = (at >= 0) & (curve[0] == self.first + at * self.interval)
        inside = at[here] < count
        seen = self.losses[place + np.where(inside, at[here], 0)]
        shared = inside.sum(axis=1)
        return shared, (inside & nearly(seen, curve[1][here])).sum(axis=1) / np.maximum(shared, 1)


@dataclass(slots=True)
class _Points:
    """Curves that log at any steps, found by some of their points: those of a run that is asked for, or some of their own."""

    most: int | None = None
    """Points kept of each curve; None for all."""
    blocks: list[tuple[Steps, Losses, Steps]] = field(default_factory=list)
    """Steps in order, their losses and the runs they are of; each block at least twice as long as the next."""

    def add(self, number: int, curve: Curve) -> None:
        """Another curve."""
        steps, losses = _some(curve, self.most) if self.most is not None else curve
        block = steps, losses, np.full(len(steps), number)
        while self.blocks and len(self.blocks[-1][0]) < 2 * len(block[0]):
            joined = [np.concatenate(both) for both in zip(self.blocks.pop(), block, strict=True)]
            order = np.argsort(joined[0], kind="stable")
            block = joined[0][order], joined[1][order], joined[2][order]
        self.blocks.append(block)

    def close(self, curve: Curve, runs: int) -> tuple[Steps, Steps]:
        """How many of the curve's steps each of so many runs has, and at how many of them the losses are the same."""
        shared, close = np.zeros(runs, np.int64), np.zeros(runs, np.int64)
        for steps, losses, numbers in self.blocks:
            low, high = (np.searchsorted(steps, curve[0], side=side) for side in ("left", "right"))
            count = high - low
            asked = np.repeat(np.arange(len(count)), count)
            at = np.arange(len(asked)) + np.repeat(low - (np.cumsum(count) - count), count)
            alike = nearly(losses[at], curve[1][asked])
            shared += np.bincount(numbers[at], minlength=runs)
            close += np.bincount(numbers[at][alike], minlength=runs)
        return shared, close


@dataclass(slots=True)
class _Uneven:
    """Curves that do not log at even steps."""

    points: _Points = field(default_factory=_Points)
    own: _Points = field(default_factory=lambda: _Points(_SAMPLE))
    lengths: dict[int, int] = field(default_factory=dict)

    def add(self, number: int, curve: Curve) -> None:
        """Another curve."""
        self.points.add(number, curve)
        self.own.add(number, curve)
        self.lengths[number] = len(curve[0])

    def likely(self, curve: Curve, runs: int) -> list[int]:
        """Those that may be the same by some points of the curve, and those much shorter by some points of their own."""
        length = np.full(runs, 0)
        length[list(self.lengths)] = list(self.lengths.values())
        some = _some(curve, _SAMPLE)
        found = _may_be(*self.points.close(some, runs), whole=len(some[0]) == len(curve[0]))
        short = (length > 0) & (2 * length < len(curve[0]))
        if short.any():
            found |= short & _may_be(*self.own.close(curve, runs), whole=False)
        return np.flatnonzero(found).tolist()


def _some(curve: Curve, most: int) -> Curve:
    """At most so many points of a curve, from all through it."""
    if len(curve[0]) <= most:
        return curve
    at = np.linspace(0, len(curve[0]) - 1, most).astype(np.int64)
    return curve[0][at], curve[1][at]


def _may_be(shared: Steps, close: Steps | Losses, *, whole: bool) -> npt.NDArray[np.bool_]:
    """Whether runs with so many common steps, and the same losses at so many of them, may be one: some points show less than all."""
    slack = 0.0 if whole else _SLACK * np.sqrt(AGREE * (1 - AGREE) / np.maximum(shared, 1))
    may: npt.NDArray[np.bool_] = (shared >= (LEAST if whole else 1)) & (close >= (AGREE - slack) * shared)
    return may


@dataclass(slots=True)
class Shelf:
    """Runs by their losses, numbered from 0 as they come."""

    runs: list[dict[str, Curve]] = field(default_factory=list)
    even: dict[str, dict[tuple[int, int], _Grid]] = field(default_factory=dict)
    odd: dict[str, _Uneven] = field(default_factory=dict)

    def add(self, run: dict[str, Curve]) -> None:
        """Another run."""
        number = len(self.runs)
        self.runs.append(run)
        for name, (steps, losses) in run.items():
            if not len(steps):
                continue
            grid = int(steps[0]), int(steps[1] - steps[0]) if len(steps) > 1 else 1
            if (np.diff(steps) == grid[1]).all():
                self.even.setdefault(name, {}).setdefault(grid, _Grid(*grid)).add(number, losses)
            else:
                self.odd.setdefault(name, _Uneven()).add(number, (steps, losses))

    def likely(self, run: dict[str, Curve]) -> list[int]:
        """Those that are worth being compared, and perhaps others."""
        found: set[int] = set()
        for name, curve in run.items():
            if len(curve[0]):
                found.update(n for grid in self.even.get(name, {}).values() for n in grid.likely(curve))
                if name in self.odd:
                    found.update(self.odd[name].likely(curve, len(self.runs)))
        return sorted(found)

    def twin(self, run: dict[str, Curve]) -> int | None:
        """The first of the runs with the same losses."""
        return next((n for n in self.likely(run) if same(self.runs[n], run)), None)
