"""Which of many runs have the same losses on the same steps.

Every pair is not held against each other: of the runs that log at even steps a few places are looked at, all runs at once, those
of the others are found by some of their points; only those that are alike there are compared step by step.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl

_COLUMNS: Final = ("loss", "eval_loss")
_SAME: Final = 0.01
"""Relative difference of losses up to which two runs are worth being compared: fewer digits are not written."""
_EXACT: Final = 2e-5
"""The same up to which two losses of one run may differ where both files write many digits: single precision, and sums of it."""
_DIGITS: Final = range(1, 6)
"""Numbers of decimals and of significant digits that count as few."""
_AGREE: Final = 0.8
_LEAST: Final = 3
"""Steps in common that it takes at least."""
_PROBES: Final = 16
_SAMPLE: Final = 96
"""Points by which a run that logs at uneven steps is found."""
_CROWD: Final = 8
"""Runs that are alike at a few places, above which more places are looked at before all of them."""
_SLACK: Final = 2.5
"""Standard deviations that the share of points with the same loss may be off among some."""
_MOST: Final = 1 << 21
"""Losses that are held against a run's at a time."""

Steps = npt.NDArray[np.int64]
Losses = npt.NDArray[np.float64]
Curve = tuple[Steps, Losses]
"""Steps, rising and each once, and the losses at them."""


def curves(steps: pl.DataFrame | None) -> dict[str, Curve]:
    """The curve of each column of losses."""
    if steps is None:
        return {}
    tables = {
        name: steps.select("step", name).drop_nulls().unique("step", keep="last").sort("step")
        for name in _COLUMNS
        if name in steps.columns
    }
    return {name: (table["step"].to_numpy(), table[name].to_numpy()) for name, table in tables.items()}


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
        enough = past - np.searchsorted(on, self.first) >= _enough(count, len(steps))
        rows = np.flatnonzero(enough)
        few = len(steps) // _PROBES
        if few > 1:
            shared, close = self._close(rows, (steps[::few], losses[::few]))
            rows = rows[(shared < _PROBES // 2) | (close >= 0.5 * _AGREE)]
        if len(steps) > 4 * _SAMPLE and len(rows) > _CROWD:
            shared, close = self._close(rows, _some(curve, _SAMPLE))
            rows = rows[(shared < _PROBES) | _may_be(shared, close * shared, whole=False)]
        if len(rows) * len(steps) <= _MOST:
            shared, close = self._close(rows, curve)
            rows = rows[(shared >= _enough(count[rows], len(steps))) & (close >= _AGREE)]
        return [self.numbers[n] for n in rows.tolist()]

    def _close(self, rows: Steps, curve: Curve) -> tuple[Steps, Losses]:
        """How many of the steps each of some curves has, and the share of them at which the losses are the same."""
        count, place = self.spans[:, rows, None]
        at = (curve[0] - self.first) // self.interval
        here = (at >= 0) & (curve[0] == self.first + at * self.interval)
        inside = at[here] < count
        seen = self.losses[place + np.where(inside, at[here], 0)]
        shared = inside.sum(axis=1)
        return shared, (inside & _alike(seen, curve[1][here])).sum(axis=1) / np.maximum(shared, 1)


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
            alike = _alike(losses[at], curve[1][asked])
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
    slack = 0.0 if whole else _SLACK * np.sqrt(_AGREE * (1 - _AGREE) / np.maximum(shared, 1))
    may: npt.NDArray[np.bool_] = (shared >= (_LEAST if whole else 1)) & (close >= (_AGREE - slack) * shared)
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


def same(a: dict[str, Curve], b: dict[str, Curve]) -> bool:
    """Whether two runs have the same losses, of training or of evaluation, on the same steps.

    One column will do: a file of evaluations may call its loss over the training set what the other calls that of batches,
    at few of whose steps it stands. Where the losses of training have steps in common and differ, nothing else will.
    """
    if "loss" in a and "loss" in b and _differ(a["loss"], b["loss"]):
        return False
    return any(_same(a[name], b[name]) for name in a if name in b)


def _differ(left: Curve, right: Curve) -> bool:
    """Whether two curves have steps in common and other losses there."""
    if not (len(left[0]) and len(right[0])):
        return False
    both, close = _close(left, right)
    return both >= _LEAST and not (close >= _AGREE and _rounded(left, right))


def _same(left: Curve, right: Curve) -> bool:
    if not (len(left[0]) and len(right[0])):
        return False
    few = len(right[0]) // _PROBES
    if few > 1:  # most files of a folder are no twins, which a few places tell
        some, close = _close(left, (right[0][::few], right[1][::few]))
        if some >= _PROBES // 2 and close < 0.5 * _AGREE:
            return False
    both, close = _close(left, right)
    alike = bool(both >= _enough(len(left[0]), len(right[0])) and close >= _AGREE)
    return alike and _telling(left, right) and _rounded(left, right)


def _telling(left: Curve, right: Curve) -> bool:
    """Whether the losses at common steps change: all runs that broke down, or stay at chance, have the same ones."""
    at = np.isin(right[0], left[0], assume_unique=True)
    return len(np.unique(right[1][at & np.isfinite(right[1])])) >= _LEAST


def _rounded(left: Curve, right: Curve) -> bool:
    """Whether the losses differ by what the fewer digits of the two leave out: other seeds of one configuration come closer than 1 %."""
    _, at, other = np.intersect1d(left[0], right[0], assume_unique=True, return_indices=True)
    x, y = left[1][at], right[1][other]
    here = np.isfinite(x) & np.isfinite(y)
    x, y = x[here], y[here]
    if not len(x):
        return True
    unit = np.maximum(_unit(x), _unit(y))
    return float(np.mean(np.abs(x - y) <= 0.51 * unit + _EXACT * np.abs(y))) >= _AGREE


def _unit(losses: Losses) -> Losses:
    """One unit in the last place written of each loss, by decimals or by significant digits, the larger; 0 where there are many."""
    size = np.abs(losses)
    whole = 10.0 ** np.floor(np.log10(np.where(size > 0, size, 1.0)))
    unit = np.zeros(len(losses))
    for digits in _DIGITS:
        for one in (np.full(len(losses), 10.0**-digits), whole * 10.0 ** (1 - digits)):
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                there = losses / one
                off = float(np.abs(there - np.round(there)).max())
            if off < 1e-6:
                unit = np.maximum(unit, one)
    return unit


def _enough(left: int | Steps, right: int) -> Losses:
    """Steps in common that it takes."""
    return np.maximum(float(_LEAST), 0.3 * np.minimum(left, right))


def _close(left: Curve, right: Curve) -> tuple[int, float]:
    """How many steps both have, and the share of them at which the losses are the same."""
    at = np.searchsorted(left[0], right[0]).clip(max=len(left[0]) - 1)
    both = left[0][at] == right[0]
    close = _alike(left[1][at][both], right[1][both])
    return len(close), float(close.mean()) if len(close) else 0.0


def _alike(x: Losses, y: Losses) -> npt.NDArray[np.bool_]:
    """Which losses differ by rounding only; both may be no number, or the same infinity."""
    with np.errstate(invalid="ignore"):
        alike: npt.NDArray[np.bool_] = np.abs(x - y) <= _SAME * np.abs(y) + 5e-4
        alike &= np.isfinite(y)
        if not np.isfinite(y).all():
            alike |= (x == y) | (np.isnan(x) & np.isnan(y))
    return alike
