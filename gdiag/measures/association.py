"""Do rare events come with other rare events more often than chance? A local-jitter permutation test (diagnosis.md 2.6).

Each event is moved at random within a few hundred rows: that keeps bursts and slow trends and breaks only the
coincidence. Fisher's exact test gave 8–12 % false alarms at a nominal 1 % when events came in bursts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from gdiag.measures.curves import Floats
from gdiag.measures.segments import Ints

REACH: Final = 250
"""Rows by which an event may be moved."""
DRAWS: Final = 999


@dataclass(frozen=True, slots=True)
class Association:
    """How often one kind of event is followed by another."""

    cause: str
    effect: str
    events: int
    """Episodes of the first kind."""
    followed: int
    """Episodes followed by the second kind within the lag."""
    chance: float
    """Mean share followed when the episodes are jittered."""
    p: float

    @property
    def share(self) -> float:
        """Share of episodes followed."""
        return self.followed / self.events


def episodes(rows: Ints, gap: int) -> Ints:
    """First row of each run of events no more than `gap` rows apart."""
    rows = np.unique(rows)
    return rows[np.append(True, np.diff(rows) > gap)] if len(rows) else rows


def follows(
    first: Ints, second: Ints, count: int, *, names: tuple[str, str], lag: int = 2, seed: int = 0
) -> Association | None:
    """Whether events in rows `first` are followed by events in rows `second` within `lag` rows, of `count` rows in all.

    None with fewer than three episodes of either kind: no permutation could tell.
    """
    starts = episodes(first, lag)
    targets = episodes(second, lag)
    if len(starts) < 3 or len(targets) < 3:
        return None
    hit = np.zeros(count + lag + 1, dtype=bool)
    for shift in range(lag + 1):  # rows from which a target lies at most `lag` ahead
        hit[np.clip(np.unique(second) - shift, 0, count)] = True
    seen = int(hit[starts].sum())
    rng = np.random.default_rng(seed)
    moved = starts[None, :] + rng.integers(-REACH, REACH + 1, size=(DRAWS, len(starts)))
    # Reflected at the ends, so that events near them are not pushed out of the log.
    moved = np.abs(moved)
    moved = np.where(moved >= count, 2 * (count - 1) - moved, moved)
    drawn = hit[np.clip(moved, 0, count - 1)].sum(axis=1)
    p = (1 + int((drawn >= seen).sum())) / (DRAWS + 1)
    return Association(names[0], names[1], len(starts), seen, float(drawn.mean() / len(starts)), p)


def significant(p: Floats, q: float) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Benjamini-Yekutieli: which of several dependent tests hold at false-discovery rate `q`."""
    n = len(p)
    if not n:
        return np.zeros(0, dtype=bool)
    order = np.argsort(p)
    limit = q * np.arange(1, n + 1) / (n * np.sum(1.0 / np.arange(1, n + 1)))
    below = np.flatnonzero(p[order] <= limit)
    held = np.zeros(n, dtype=bool)
    if len(below):
        held[order[: below[-1] + 1]] = True
    return held
