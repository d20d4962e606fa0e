"""Adam's second moment as far as gradient norms tell: whether it lagged behind when a loss event began.

The second moment forgets over 1 / (1 - beta2) steps. After a long stretch of small gradients it is small, and a gradient
of the old size makes a step many times too large (Wortsman et al. 2023, arXiv:2304.13013: spikes come 1-8 steps after
the squared gradient outgrew its moment, from a root mean square of 2.3 on). Norms of whole tensors only hint at that:
what decides are the moments themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

import numpy as np

from gdiag.measures.baseline import mad_sigma
from gdiag.measures.curves import Curve, Floats

LEAD_STEPS = 8
"""Steps before an onset in which the moment must be outgrown."""
LEAST_STEPS = 40
"""Steps of memory below which a moment follows too closely to be stale."""
LEAST_ROWS = 16
"""Logged rows of memory below which its levels are not known."""
QUIET = 0.67
"""Level of a quiet stretch over that before it, at most."""
SIGMAS = 2.0


@dataclass(frozen=True, slots=True)
class Stale:
    """A quiet stretch of gradients that ends in a jump."""

    since: int
    """First step of the quiet stretch."""
    rows: int
    quiet: float
    """Its median gradient norm over that of the rows before it."""
    jump: float
    """Largest gradient norm at the onset over the quiet level."""
    rms: float
    """Largest gradient norm at the onset over the root of the moment that norms alone give."""


def stale_moment(grad: Curve, onset: int, beta2: float) -> Stale | None:
    """The stretch of small gradients that ends at step `onset`; None where there is none or the moment forgets at once.

    grad: gradient norm before clipping, without the loss scale.
    """
    positive = grad.finite.keep(grad.value > 0)
    i = int(np.searchsorted(positive.step, onset))
    apart = float(np.median(np.diff(positive.step))) if len(positive) > LEAST_ROWS else 0.0
    if not apart or not 0 < beta2 < 1 or 1 / (1 - beta2) < LEAST_STEPS:
        return None
    memory = int(min(1 / (1 - beta2) / apart, i // 3))
    if memory < LEAST_ROWS:
        return None
    logs = np.log(positive.value)
    lead = lead_rows(apart)
    entry = _entry(logs[: i - lead], memory)
    quiet, before = logs[entry : i - lead], logs[max(0, entry - memory) : entry]
    # A start whose gradients settle is no stretch that falls asleep.
    if len(quiet) < LEAST_ROWS // 2 or len(before) < max(LEAST_ROWS // 2, min(memory, len(quiet)) // 2):
        return None
    low, high = float(np.median(quiet)), float(np.median(before))
    spread = max(mad_sigma(quiet), 1e-3)
    level = all(_drift(part) < 0.5 * (high - low) for part in (quiet, before))
    still = level and float(np.mean(quiet < high)) > 0.9
    if low - high > np.log(QUIET) or high - low < SIGMAS * spread or not still:
        return None
    near = positive.value[i - lead : i + 3]
    rms = near / np.sqrt(_moment(positive.value[: i + 3], beta2**apart)[i - lead : i + 3])
    return Stale(
        int(positive.step[entry]),
        len(quiet),
        float(np.exp(low - high)),
        float(near.max() / np.exp(low)),
        float(rms.max()),
    )


def lead_rows(apart: float) -> int:
    """Logged rows, `apart` steps from one to the next, within the steps before an onset in which a moment is outgrown."""
    return max(2, ceil(LEAD_STEPS / apart))


def _drift(logs: Floats) -> float:
    """How far the level of the last third lies from that of the first."""
    third = len(logs) // 3
    return abs(float(np.median(logs[-third:]) - np.median(logs[:third])))


def _entry(logs: Floats, memory: int) -> int:
    """Row at which the level of the last rows falls most, within three memories before the end."""
    width = max(LEAST_ROWS // 4, memory // 4)
    first, last = max(width, len(logs) - 3 * memory), len(logs) - max(width, LEAST_ROWS // 2)
    if last <= first:
        return len(logs)
    rows = np.unique(np.linspace(first, last, 200).astype(np.int64))
    falls = [float(np.median(logs[r - width : r]) - np.median(logs[r : r + width])) for r in rows.tolist()]
    return int(rows[int(np.argmax(falls))])


LARGEST = 1e150
"""Norm whose square is still a float."""


def _moment(value: Floats, keep: float) -> Floats:
    """The moment before each row: the squares of the rows before, each row forgotten to the share `keep`, shape (n,)."""
    value = np.clip(value, -LARGEST, LARGEST)
    moment = np.empty(len(value))
    held = float(value[0] ** 2)
    start = max(0, len(value) - int(5 / (1 - keep)))
    moment[:start] = held
    for row in range(start, len(value)):
        moment[row] = held
        held = keep * held + (1 - keep) * float(value[row]) ** 2
    return np.maximum(moment, 1e-300)
