"""Gradient levels against the learning rate: norms that surge in the first steps, norms that calm when the rate falls."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gdiag.measures.baseline import running_median
from gdiag.measures.curves import Curve
from gdiag.measures.schedule import Schedule

LEAST_ROWS = 15
SMOOTH = 3
"""Rows at least over which loss and gradient norm are smoothed (median) while they are held against their start."""
STUCK = 0.05
STUCK_GAIN = 0.15
"""Share of its start, or of all that the run gains, by which a loss may lie below its start and not have begun to fall."""
STUCK_ROWS = 6
"""Fewest rows of a surge: a shorter one is noise, or a warm-up that has hardly begun."""
LATEST_ROWS = 30
"""Rows within which a surge must begin, a twentieth of the run in long ones."""
LEAVING, LEAVING_LOSS = 0.1, 1.05
"""Share of the run within which a network that leaves a small initialisation begins to learn, and its loss until then over
that of the start. Its gradients stay large while it learns under the same rate; a rate that is too high throws the loss up,
and gradients calm as the run gets away."""
FAR = 8.0
"""Median norm at high over median norm at low rates that needs no wandering: the run only begins to learn as the rate falls."""


@dataclass(frozen=True, slots=True)
class Surge:
    """Gradients that grow manyfold in the first steps while nothing is learned."""

    step: int
    """First row with three times the gradient of the first rows."""
    last_step: int
    """Last row before the run begins to learn, or of the run."""
    lr_share: float
    """Largest learning rate up to there over the peak."""
    grad_ratio: float
    """Median gradient norm of the rows in between over the first ones."""
    loss_share: float
    """Loss of those rows over the loss of the first ones."""
    recovered: bool
    """The run learns later."""


def surge(schedule: Schedule, lr: Curve, loss: Curve, grad: Curve, *, ratio: float = 5.0) -> Surge | None:
    """Whether gradients grow `ratio`-fold in the first steps and stay there for as long as the loss stays where it began.

    In runs that learn, gradients fall from the first steps on: in 60 labelled healthy runs the ratio stays below 1.2.
    A log of every tenth step may hold one row before the surge, and few rows of it.
    """
    if len(grad) < 2 * LEAST_ROWS or len(loss) < 2 * LEAST_ROWS or schedule.first_step > 0.01 * schedule.last_step + 1:
        return None
    early = float(grad.value[:2].min())
    start = float(np.median(loss.value[:3]))
    if early <= 0 or start <= 0:
        return None
    # What the run had learned at its best: it may be lost again, long after, to something else.
    parts = np.array_split(loss.value, min(20, len(loss) // 5))
    learned = min(float(np.median(part)) for part in parts[1:])
    # Loss as of each row of the gradient, both smoothed: one row is no level.
    width = max(SMOOTH, len(grad) // 200 | 1)
    level = np.interp(grad.step, loss.step, running_median(loss.value, width, centre=True))
    norm = running_median(grad.value, width, centre=True)
    held = (norm >= ratio * early) & (level >= start - max(STUCK * start, STUCK_GAIN * (start - learned)))
    if not held.any():
        return None
    first = int(np.argmax(held))
    end = first + int(np.argmin(np.append(held[first:], False)))
    share = float(lr.value[lr.step <= grad.step[end - 1]].max(initial=0.0)) / schedule.peak
    if first > max(LATEST_ROWS, len(grad) // 20) or end - first < STUCK_ROWS or share < 0.3:
        return None
    stuck, surged = float(np.median(level[first:end])) / start, float(np.median(norm[first:end]))
    if learned < 0.8 * start and end <= LEAVING * len(grad) and stuck <= LEAVING_LOSS:
        onward = float(np.median(norm[end : 2 * end - first]))
        if onward >= 0.5 * surged and (lr.at(int(grad.step[end - 1])) or 0.0) >= 0.8 * share * schedule.peak:
            return None
    return Surge(
        int(grad.step[np.argmax(grad.value > 3 * early)]), int(grad.step[end - 1]), share, float(np.median(grad.value[first:end])) / early,
        stuck, learned < 0.8 * start,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Calming:
    """Gradients that wander while the rate is near its peak and calm when it has fallen."""

    step: int
    last_step: int
    """Last row with a rate of 60 % of the peak or more."""
    level_ratio: float
    """Median norm at high over median norm at low rates."""
    spread_high: float
    """Natural logarithm of the ninetieth over the tenth percentile at high rates."""
    spread_low: float


def calming(
    schedule: Schedule, lr: Curve, grad: Curve, *, spread: float = 1.3, level: float = 2.0
) -> Calming | None:  # fmt: skip
    """Whether gradients spread `spread` e-folds near the peak, 40 % of that at low rates, and `level` times as high; or 8 times.

    In 60 labelled runs without a fault of the rate the spread at high rates stays below 1.0 and the level below 1.7.
    """
    begin = schedule.warmup_end if schedule.warmup_end is not None else schedule.first_step
    if schedule.shape == "restarts" or schedule.jumps or len(grad) < 4 * LEAST_ROWS:
        return None
    share = np.interp(grad.step, lr.step, lr.value) / schedule.peak
    norm = np.log(np.maximum(grad.value, 1e-30))
    high = (grad.step >= begin) & (share >= 0.6)
    low = (grad.step >= begin) & (share < 0.35)
    if high.sum() < LEAST_ROWS or low.sum() < LEAST_ROWS:
        return None
    wide = float(np.quantile(norm[high], 0.9) - np.quantile(norm[high], 0.1))
    narrow = float(np.quantile(norm[low], 0.9) - np.quantile(norm[low], 0.1))
    ratio = float(np.exp(np.median(norm[high]) - np.median(norm[low])))
    wanders = wide >= spread and narrow <= 0.4 * wide and ratio >= level
    return (
        Calming(int(grad.step[high][0]), int(grad.step[high][-1]), ratio, wide, narrow)
        if wanders or ratio >= FAR
        else None
    )
