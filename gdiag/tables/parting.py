"""Where two curves over the same steps part: by any digit, and beyond what noise explains."""

from __future__ import annotations

import numpy as np

from gdiag.measures.curves import Floats

SAME = 1e-6
"""Relative difference below which two figures are the same: logs round, and float32 carries seven digits."""
BLOCK = 20
"""Rows of the blocks whose medians are compared, at least."""
Z = 6.0
"""Standard errors that a block's median difference must exceed."""
LEAST = 0.005
"""Share of the level that a difference must reach to matter."""


def first_difference(x: Floats, y: Floats) -> int | None:
    """Index of the first pair that differs by more than rounding; both arrays (n,), over the same steps."""
    differs = np.abs(x - y) > SAME * np.maximum(np.abs(x), np.abs(y))
    return int(differs.argmax()) if differs.any() else None


def first_lasting_difference(x: Floats, y: Floats) -> int | None:
    """Index of the first row of the first block whose median difference is beyond noise and stays so, on one side, to the end.

    A block's noise is the median absolute deviation of the successive differences of x − y inside it, so that a drift
    does not count as noise; its median varies by 1.25 of that over the root of the block's length.
    """
    difference = x - y
    size = max(BLOCK, len(difference) // 50)
    blocks = difference[: len(difference) // size * size].reshape(-1, size)
    if len(blocks) < 2:
        return None
    step = np.diff(blocks, axis=1)
    spread = np.median(np.abs(step - np.median(step, axis=1, keepdims=True)), axis=1)
    error = 1.25 * 1.4826 * spread / np.sqrt(2 * size)
    median = np.median(blocks, axis=1)
    limit = np.maximum(Z * error, LEAST * float(np.median(np.abs(y))))
    apart = np.where(median > limit, 1, np.where(median < -limit, -1, 0))
    if not apart[-1]:
        return None
    others = np.flatnonzero(apart != apart[-1])
    first = int(others[-1] + 1) if len(others) else 0
    # The block may begin before the curves part: its first row on that side by half of what follows is the place.
    ahead = apart[-1] * difference > 0.5 * abs(median[min(first + 1, len(median) - 1)])
    own = ahead[first * size : (first + 1) * size]
    at = first * size + (int(own.argmax()) if own.any() else 0)
    while at and ahead[at - 1]:
        at -= 1
    return at
