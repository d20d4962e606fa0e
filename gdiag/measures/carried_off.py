"""Weights that the updates carry off: a norm that grows by percents a step, where updates are a thousandth of the weights.

The norm of the weights moves by no more than the norm of the update, so its own growth is a lower bound for the size of the
update against the weights, which needs no second column.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gdiag.measures.curves import Points
from gdiag.measures.layers import Floats, Steps

PACE = 0.02
"""Least growth of the norm a step, as a share of it. Of 81 healthy runs of small networks the fastest grew by 0.005 over any
ten of its first steps; usual updates are 0.001 (Karpathy's rule of thumb) in any direction."""
LEAST_STEPS, LEAST_MOVES = 10, 3
"""Steps over which it must keep that up, and logged moves in them."""
LEAST_RATE = 5e-3
"""Learning rate below which parameters that began at zero (adapters, biases) may grow so for good reason."""
LEAST_FAST = 2
"""Logged moves at that pace, and half of those in the stretch: a norm that jumps once was not carried off by updates."""
BEGUN = 0.02
"""Least share of the later norm at the start: below it the parameters began near zero."""


@dataclass(frozen=True, slots=True)
class CarriedOff:
    """A stretch over which the norm of all parameters grows by percents a step."""

    step: int
    last_step: int
    growth: float
    """Norm at its end over that at its start."""
    pace: float
    """Mean growth a step in it, as a share of the norm."""
    lr_share: float
    """Largest learning rate in it over the peak."""


def carried_off(step: Steps, norm: Floats, lr: Points) -> CarriedOff | None:
    """The first stretch of PACE and more; None without one, or below LEAST_RATE.

    Args:
        step: ascending, (n,).
        norm: of all parameters together, (n,); what is not positive counts as not logged.
        lr: the learning rate, at any steps.
    """
    held = np.isfinite(norm) & (norm > 0)
    step, norm = step[held], norm[held]
    if len(step) <= LEAST_MOVES or not len(lr) or norm[0] < BEGUN * float(np.median(norm)):
        return None
    logs, rate = np.log(norm), np.interp(step, lr.step, lr.value)
    firsts = np.arange(len(step) - LEAST_MOVES)
    lasts = np.maximum(firsts + LEAST_MOVES, np.searchsorted(step, step[firsts] + LEAST_STEPS))
    firsts, lasts = firsts[lasts < len(step)], lasts[lasts < len(step)]
    whole = logs[lasts] - logs[firsts] >= PACE * (step[lasts] - step[firsts])
    for first, last in zip(firsts[whole].tolist(), lasts[whole].tolist(), strict=True):
        if not _fast(step, logs, first, last) or rate[first : last + 1].max() < LEAST_RATE:
            continue
        while logs[first + 1] - logs[first] < 0.5 * PACE * (step[first + 1] - step[first]):
            first += 1
        while last + 1 < len(step) and logs[last + 1] - logs[last] > 0.5 * PACE * (step[last + 1] - step[last]):
            last += 1
        growth = float(logs[last] - logs[first])
        return CarriedOff(
            int(step[first]), int(step[last]), float(np.exp(growth)), float(np.expm1(growth / (step[last] - step[first]))),
            float(rate[first : last + 1].max() / lr.value.max()),
        )  # fmt: skip
    return None


def _fast(step: Steps, logs: Floats, first: int, last: int) -> bool:
    """Whether no move alone makes the pace from row `first` to row `last`."""
    fast = np.diff(logs[first : last + 1]) >= PACE * np.diff(step[first : last + 1])
    return bool(fast.sum() >= max(LEAST_FAST, len(fast) // 2))
