"""Validation beside training: where it is best, how it moves at an onset, whether it follows the training loss."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gdiag.measures.baseline import row_noise
from gdiag.measures.curves import Curve, Floats

LEAST_EVALS = 5
FALLING = 0.9
"""Share of the pairs of evaluations whose later one is the lower, from which validation comes down."""
LEAST_JUMP_EVALS = 8
JUMP, JUMP_ALONE, JUMP_SHARE = 8.0, 20.0, 0.1
"""A jump of evaluations in standard deviations of one, that of a single one, and as a share of the level before."""
LEAST_ROWS = 8
"""Training rows: logs of one row an epoch are short."""


@dataclass(frozen=True, slots=True)
class Overfit:
    """Validation that rises from its best while training goes on falling."""

    best_step: int
    best: float
    """Smoothed validation loss at its best [nat]."""
    lowest: float
    """Lowest evaluation there [nat], at `best_step`."""
    last_step: int
    last: float
    """Median of the last three evaluations [nat]."""
    evals_after: int
    rising: float
    """Share of the pairs of evaluations after the best whose later one is the higher: 1 for a steady rise, 0.5 for none."""
    lowest_after: float
    """Lowest smoothed validation loss of the last two thirds of the evaluations after the best [nat]."""
    train_change: float
    """Training loss at the end minus at the best [nat]."""
    train_rise: float
    """The same of the last three training rows alone, which show what has just begun [nat]."""
    noise: float
    """Standard deviation of one evaluation [nat]."""
    falling_since: int | None = None
    """Step of the highest evaluation where validation has long been coming down from it again, as it does in late
    generalisation (Power et al. 2022) and double descent."""


def overfit(train: Curve, evaluation: Curve) -> Overfit | None:
    """How far validation has left its best; None with fewer than five evaluations or none after the best."""
    y = evaluation.value
    if len(y) < LEAST_EVALS or len(train) < LEAST_ROWS:
        return None
    smooth = _median3(y)
    b = int(np.argmin(smooth))
    after = len(y) - 1 - b
    if after < 2:
        return None
    noise = row_noise(y)
    i, j = np.triu_indices(after, 1)
    rising = float(np.mean(smooth[b + 1 :][j] > smooth[b + 1 :][i]))
    lowest = max(0, b - 1) + int(np.argmin(y[max(0, b - 1) : b + 2]))
    last = float(np.median(y[-min(3, after) :]))
    there = _around(train, int(evaluation.step[b]))
    change = _around(train, int(evaluation.step[-1])) - there
    until = int(np.searchsorted(train.step, evaluation.step[-1], side="right"))
    rise = float(np.median(train.value[max(0, until - 3) : max(1, until)])) - there
    return Overfit(
        int(evaluation.step[lowest]), float(smooth[b]), float(y[lowest]), int(evaluation.step[-1]), last, after, rising,
        float(smooth[b + 1 + after // 3 :].min()), change, rise, noise, _falling_since(evaluation, smooth, b, noise),
    )  # fmt: skip


def _falling_since(evaluation: Curve, smooth: Floats, best: int, noise: float) -> int | None:
    """The step of the peak after `best` when half of the evaluations since lie behind it, nearly all pairs of them fall,
    and a quarter of the rise is gone."""
    peak = best + 1 + int(np.argmax(smooth[best + 1 :]))
    since = smooth[peak:]
    if len(since) < max(LEAST_EVALS, (len(smooth) - best) // 2):
        return None
    i, j = np.triu_indices(len(since), 1)
    falls = float(np.mean(since[j] < since[i])) >= FALLING
    fallen = float(since[0] - since[-1])
    enough = fallen >= max(0.25 * float(since[0] - smooth[best]), 4 * noise)
    return int(evaluation.step[peak]) if falls and enough else None


def _median3(y: Floats) -> Floats:
    padded = np.concatenate((y[:1], y, y[-1:]))
    return np.asarray(np.median(np.lib.stride_tricks.sliding_window_view(padded, 3), axis=1), dtype=np.float64)


def _around(train: Curve, step: int) -> float:
    """Training level up to `step`: the median over the last twentieth of the rows, at least ten, in short logs a sixth."""
    i = int(np.searchsorted(train.step, step, side="right"))
    width = max(min(10, len(train) // 6), len(train) // 20, 1)
    return float(np.median(train.value[max(0, i - width) : max(1, i)]))


@dataclass(frozen=True, slots=True)
class EvalJump:
    """Evaluations that leave the level of those before while the training loss does not move."""

    step: int
    """First evaluation concerned."""
    last_step: int
    level: float
    """Median of the three evaluations before [nat]."""
    height: float
    """Median of the evaluations concerned, over that level [nat]."""
    evals: int
    returned: bool
    noise: float
    """Standard deviation of one evaluation [nat]."""
    train_change: float
    """Training loss during it minus before [nat]."""


def eval_jumps(train: Curve, evaluation: Curve, *, z: float = JUMP) -> list[EvalJump]:
    """Stretches of evaluations far above those before, of which training shows nothing; none below eight evaluations.

    z: standard deviations of one evaluation by which a stretch must stand above those before it.

    A stretch ends where half of its height is gone. One that lasts to the end must be level, for a rise that goes on is
    overfitting, as is one at which the training loss falls; one evaluation alone must stand out further, and three such
    are a habit of the evaluation.
    """
    y = evaluation.value
    if len(y) < LEAST_JUMP_EVALS or len(train) < LEAST_ROWS:
        return []
    noise = max(row_noise(y), 0.01 * abs(float(np.median(y))))
    found: list[EvalJump] = []
    i = 4
    while i < len(y):
        level = float(np.median(y[i - 3 : i]))
        rise = float(y[i] - y[i - 3 : i].max())
        if rise <= max(z * noise, JUMP_SHARE * abs(level)):
            i += 1
            continue
        back = np.flatnonzero(y[i:] - level <= 0.5 * float(y[i] - level))
        end = i + int(back[0]) if len(back) else len(y)
        height = float(np.median(y[i:end])) - level
        change = _train_change(train, int(evaluation.step[i - 1]), int(evaluation.step[end - 1]))
        if (
            height >= z * noise
            and change is not None
            and change <= 0.2 * height
            and not _next_epoch(train, evaluation, i, end, height)
            and _is_one(y[i:end], rise, height, noise, returned=end < len(y))
        ):
            steps = int(evaluation.step[i]), int(evaluation.step[end - 1])
            found.append(EvalJump(*steps, level, height, end - i, end < len(y), noise, change))
        i = max(i + 1, end + 3)
    lone = sum(jump.evals == 1 for jump in found)
    return [jump for jump in found if jump.evals > 1 or lone < 3]


def _is_one(part: Floats, rise: float, height: float, noise: float, *, returned: bool) -> bool:
    """Whether evaluations are one jump: several, or a single one that came back from far; level where they last."""
    if returned:
        return len(part) > 1 or rise > JUMP_ALONE * noise
    half = len(part) // 2
    return len(part) >= 3 and float(np.median(part[-half:]) - np.median(part[:half])) <= 0.25 * height


def _next_epoch(train: Curve, evaluation: Curve, i: int, end: int, height: float) -> bool:
    """Whether the training loss falls where evaluation `i` rises, by half as much or more.

    So it goes as an epoch begins whose samples the model has learned by heart: that is overfitting, in stairs.
    """
    before, after = int(evaluation.step[i - 1]), int(evaluation.step[min(i + 1, end - 1)])
    change = _train_change(train, before, after)
    return change is not None and change <= -0.5 * height


def _train_change(train: Curve, before: int, last: int) -> float | None:
    """Training level from step `before` to `last` against as many rows up to `before`; None with fewer than five rows."""
    a, b = (int(k) for k in np.searchsorted(train.step, [before, last], side="right"))
    during = train.value[a:b]
    earlier = train.value[max(0, a - max(len(during), 10)) : a]
    return float(np.median(during) - np.median(earlier)) if min(len(during), len(earlier)) >= 5 else None


@dataclass(frozen=True, slots=True)
class EvalChange:
    """Validation loss on both sides of an onset."""

    before: float
    after: float
    z: float
    """Change over the standard deviation of one evaluation."""


def eval_change(evaluation: Curve, step: int) -> EvalChange | None:
    """How validation moves at `step`: the mean of the two evaluations after it against the two before.

    None when fewer than two lie on either side. A model that was harmed moves it; data or a loader that changed do not.
    """
    i = int(np.searchsorted(evaluation.step, step))
    if i < 2 or len(evaluation) - i < 2:
        return None
    y = evaluation.value
    noise = max(row_noise(y), 1e-3 * abs(float(np.median(y))), 1e-9)
    before, after = float(y[i - 2 : i].mean()), float(y[i : i + 2].mean())
    return EvalChange(before, after, (after - before) / noise)
