"""State besides the weights that a resume must bring back: the count of steps and the loss scale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from gdiag.measures.baseline import mad_sigma
from gdiag.measures.curves import Curve, Path, Points
from gdiag.measures.loss_scale import SEARCH_ROWS
from gdiag.measures.segments import gaps
from gdiag.measures.trajectory import Restart

LEVEL_ROWS = 20
"""Rows on either side whose median is the level of the loss."""
GONE_ON = 0.2
"""Share of what the model had learned that a loss which goes on may be off by."""
SAME_RATE = 0.02
LEAP = 20.0
"""Log intervals that the counter must skip to have leapt; and how much further the rate would have moved meanwhile."""
RESET = 4.0
"""Factor by which the loss scale must be larger at once: a scaler that grows doubles it after hundreds of steps."""
UNMARKED = 8.0
"""The same where the log shows no restart, within NEAR steps."""
NEAR = 100


@dataclass(frozen=True, slots=True)
class CounterLoss:
    """A place where the count of steps does not go on while the model does."""

    kind: Literal["reset", "leap"]
    step: int
    """First step after it."""
    last_step: int
    """Last step before it."""
    row: dict[str, object]
    """Place of the first row after it."""
    before: float
    """Level of the loss before [nat]."""
    after: float
    start: float
    """Loss with which the run began [nat]."""
    noise: float
    goes_on: tuple[str, ...]
    """Columns that go on from where they were: lr, tokens, samples."""
    begins_again: tuple[str, ...] = ()
    """Columns that begin again with the counter."""


def counter_losses(paths: Sequence[Path], restarts: Sequence[Restart]) -> list[CounterLoss]:
    """Restarts that count from the beginning with a trained model's loss, and leaps that no trained steps explain."""
    return _resets(paths, restarts) + _leaps(paths[0])


def _resets(paths: Sequence[Path], restarts: Sequence[Restart]) -> list[CounterLoss]:
    loss = paths[0].curve("loss").finite
    found = []
    for restart in restarts:
        old = next((p for p in paths if p.kind == "tail" and p.judged_from == restart.step), None)
        if not restart.from_start or old is None or len(loss) < LEVEL_ROWS:
            continue
        earlier = old.curve("loss").finite
        if len(earlier) < 2 * LEVEL_ROWS or loss.step[0] != restart.step:
            continue
        start = float(np.median(earlier.value[:5]))
        before, after = float(np.median(earlier.value[-LEVEL_ROWS:])), float(np.median(loss.value[:LEVEL_ROWS]))
        noise = mad_sigma(earlier.value[-2 * LEVEL_ROWS :])
        learned = start - before
        # The first rows alone tell a model that goes on from one that learns fast.
        first = float(np.median(loss.value[:5]))
        if learned < max(6 * noise, 0.05 * start) or max(abs(after - before), abs(first - before)) > GONE_ON * learned:
            continue
        goes_on, again = _others(old, paths[0])
        found.append(
            CounterLoss(
                "reset", restart.step, restart.last_step, loss.row(0), before, after, start, noise, goes_on, again
            )
        )
    return found


def _others(old: Path, new: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Columns that go on over the reset, and those that begin again; a constant rate does neither."""
    goes_on, again = [], []
    for name in ("lr", "tokens", "samples"):
        earlier, later = old.curve(name).value, new.curve(name).value
        if len(earlier) < 10 or len(later) < 3:
            continue
        first, last, next_one = float(earlier[0]), float(earlier[-1]), float(later[0])
        if abs(first - last) <= SAME_RATE * max(abs(first), abs(last)):
            continue
        if abs(next_one - last) <= SAME_RATE * abs(last) + 2 * abs(last - float(earlier[-2])):
            goes_on.append(name)
        elif abs(next_one - first) < 0.2 * abs(next_one - last):
            again.append(name)
    return tuple(goes_on), tuple(again)


def _leaps(path: Path) -> list[CounterLoss]:
    """Gaps over which nothing was trained: the rate, or the samples or tokens seen, moved by one log interval only."""
    loss = path.curve("loss").finite
    usual = float(np.median(np.diff(loss.step))) if len(loss) > 2 * LEVEL_ROWS else 0.0
    found = []
    for last, step in gaps(loss.step) if usual else ():
        i = int(np.searchsorted(loss.step, step))
        skipped = (step - last) / usual
        if skipped < LEAP or i < LEVEL_ROWS or len(loss) - i < LEVEL_ROWS:
            continue
        told = {name: _stood(path.curve(name).finite, last, step, skipped) for name in ("lr", "tokens", "samples")}
        shown = tuple(name for name, stood in told.items() if stood)
        if not shown or False in told.values():
            continue
        before, after = (float(np.median(loss.value[s])) for s in (slice(i - LEVEL_ROWS, i), slice(i, i + LEVEL_ROWS)))
        noise = mad_sigma(loss.value[i - LEVEL_ROWS : i])
        start = float(np.median(loss.value[:5]))
        found.append(CounterLoss("leap", step, last, loss.row(i), before, after, start, noise, shown))
    return found


def _stood(curve: Points, last: int, step: int, skipped: float) -> bool | None:
    """Whether a column went on by one row over a leap of `skipped` rows; None where it cannot tell."""
    i = int(np.searchsorted(curve.step, step))
    if i < 12 or i + 2 >= len(curve) or curve.step[i - 1] < last:
        return None
    pace = np.diff(curve.value[i - 12 : i])
    usual, moved = float(np.median(pace)), float(curve.value[i] - curve.value[i - 1])
    spread = float(np.ptp(pace))
    if usual == 0 or abs(usual) * skipped < LEAP * max(spread, abs(usual)) / 2:
        return None
    return abs(moved - usual) <= max(2 * abs(usual), 2 * spread)


@dataclass(frozen=True, slots=True)
class ScaleReset:
    """A place where the loss scale does not go on from where it was."""

    step: int
    row: dict[str, object]
    before: float
    after: float
    halvings: float
    """Times it is halved in the rows after, until it fits."""
    skips: int
    last_step: int
    """Last step of those."""
    at_restart: bool


def scale_resets(paths: Sequence[Path], restarts: Sequence[int]) -> list[ScaleReset]:
    """Places where the scale leaps up, or falls to the run's first one at a restart.

    restarts: first steps after restarts.
    """
    scale, skipped = paths[0].curve("loss_scale").finite, paths[0].curve("skipped")
    if len(scale) <= LEVEL_ROWS:
        return []
    starts = np.searchsorted(scale.step, np.asarray(restarts, dtype=np.int64))
    leaps = np.flatnonzero(scale.value[1:] >= RESET * scale.value[:-1]) + 1
    found = []
    for i in sorted({*leaps.tolist(), *starts[(starts > 0) & (starts < len(scale))].tolist()}):
        at_restart, after = i in starts, float(scale.value[i])
        before = _due(paths, scale, i) if at_restart else float(scale.value[i - 1])
        if before <= 0 or after <= 0:
            continue
        unmarked = after >= UNMARKED * before and scale.step[i] - scale.step[i - 1] <= NEAR
        back = before >= RESET * after and after == scale.value[0]
        if unmarked or (at_restart and (back or after >= RESET * before)):
            found.append(_reset(scale, skipped, i, before, at_restart))
    return found


def _due(paths: Sequence[Path], scale: Points, i: int) -> float:
    """The scale logged at the same step before the restart, else at the row before."""
    step = int(scale.step[i])
    for path in paths[1:]:
        if path.kind == "tail" and path.judged_from == step:
            old = path.curve("loss_scale").at(step)
            if old is not None:
                return old
    return float(scale.value[i - 1])


def _reset(scale: Points, skipped: Curve, i: int, before: float, at_restart: bool) -> ScaleReset:
    value = np.maximum(scale.value[i : i + SEARCH_ROWS], 1e-12)
    drops = np.maximum(0.0, -np.diff(np.log2(value)))
    last = int(scale.step[i + int(np.flatnonzero(drops)[-1]) + 1]) if drops.any() else int(scale.step[i])
    inside = (skipped.step >= scale.step[i]) & (skipped.step <= last)
    return ScaleReset(
        int(scale.step[i]), scale.row(i), before, float(scale.value[i]), float(drops.sum()),
        int(np.maximum(0.0, skipped.value[inside]).sum()), last, at_restart,
    )  # fmt: skip
