"""Memory over the run: does it grow, by how much, and how close does it come to what the card has."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from gdiag.measures.curves import Floats
from gdiag.measures.segments import Ints
from gdiag.measures.trends import mann_kendall

LEAST_BLOCKS = 22
"""Half of so many still tell a climb from chance (Mann-Kendall: z 4.2 for eleven in order)."""


@dataclass(frozen=True, slots=True)
class Growth:
    """A lasting climb of memory use."""

    start: int
    """Index of the first value of the climb."""
    end: int
    before: float
    """Use before the climb [B]."""
    after: float
    """Use at the end [B]."""
    z: float
    """Mann-Kendall z of the second half."""
    steps: int
    """Blocks in which it rises: one is an allocator's step, many are a leak."""


def growth(values: Floats, blocks: int = 60) -> Growth | None:
    """The climb of a series, None when it does not climb to its end.

    The first twentieth is warm-up. Allocators fill up in a few steps early on and stay: only a climb that goes on
    through the second half, in many small steps, counts. A log of few rows is cut into as many blocks of two.
    """
    finite = np.flatnonzero(np.isfinite(values) & (values > 0))
    use = finite[len(finite) // 20 :]
    blocks = min(blocks, len(use) // 2)
    if blocks < LEAST_BLOCKS:
        return None
    edges = np.linspace(0, len(use), blocks + 1).astype(int)
    level = np.array([np.median(values[use[a:b]]) for a, b in pairwise(edges)])
    half = level[blocks // 2 :]
    z = mann_kendall(half)
    gain = np.diff(half)
    rises = int((gain > 0.001 * half[:-1]).sum())
    # A climb without a pause is correlated throughout, for which the score is cut: its steps speak for themselves.
    steady = int((gain > 0).sum()) >= 0.95 * len(gain)
    if (z <= 4 and not steady) or rises < 5 or half[-1] < 1.01 * half[0]:
        return None
    settled = np.flatnonzero(level > level[0] + 0.1 * (level[-1] - level[0]))
    first = int(settled[0]) if len(settled) else 0
    return Growth(int(use[edges[first]]), int(use[-1]), float(level[0]), float(level[-1]), float(z), rises)


def per_step_rate(found: Growth, step: Ints) -> float:
    """Bytes per step over the climb."""
    return (found.after - found.before) / max(1, int(step[found.end]) - int(step[found.start]))
