"""Collective and number of ranks of a test run from what its rows say: root, operation, and busbw over algbw."""

from __future__ import annotations

import math
from typing import Final

MANY: Final = 100_000
"""More ranks than any benchmark runs on."""
RATIOS: Final = frozenset({"all_reduce", "all_gather", "reduce_scatter", "alltoall", "alltoallv", "gather", "scatter"})
"""Collectives whose busbw/algbw tells the number of ranks."""


def collective_of(redop: str | None, root: int | None, ratio: float | None) -> str | None:
    """What redop, root and the ratio leave as the only usual choice."""
    rooted = root is not None and root >= 0
    if redop not in {None, "", "none"}:
        if rooted:
            return "reduce"
        return None if not ratio else "all_reduce" if ratio >= 0.995 else "reduce_scatter"
    if rooted:
        return "broadcast"
    return "all_gather" if ratio is not None and 0.3 < ratio < 0.9995 else None


def ranks_of(collective: str | None, ratio: float | None, error: float) -> tuple[int, int] | None:
    """Numbers of ranks that the ratio allows: 2(n-1)/n for all_reduce, (n-1)/n for the gather family."""
    if ratio is None or not (math.isfinite(ratio) and math.isfinite(error)) or collective not in RATIOS:
        return None
    whole = 2.0 if collective == "all_reduce" else 1.0
    low, high = whole - ratio + error, whole - ratio - error
    if low <= 0 or ratio <= 0:
        return None
    least = whole / low
    most = whole / high if high > 0 else float("inf")
    if most > MANY:
        return (math.ceil(least - 1e-6), MANY)
    first, last = math.ceil(least - 1e-6), math.floor(most + 1e-6)
    if first > last:
        nearest = round(whole / (whole - ratio))
        return (nearest, nearest)
    return (max(first, 1), last)
