"""The rank whose loss leaves its own usual distance to the other ranks', and stays away."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gdiag.measures.baseline import Floats, mad_sigma, row_noise, running_median
from gdiag.measures.layers import column_median
from gdiag.measures.ranks import RankTable

STRETCH, HITS = 8, 7
"""Rows in a row, and how many of them must stand out, for a rank's loss to have left the others."""
APART, APART_SHARE = 2.5, 0.1
"""How far each: in robust deviations of the rank's usual distance to the others; their median twice that, and as a share of
the loss."""
USUAL = 8 * STRETCH
"""Rows before a stretch whose median is the usual distance."""
WANDERS = 6.0
"""Robust deviations of such medians at the usual distance that theirs must reach: a rank's own data come in stretches too."""


@dataclass(frozen=True, slots=True)
class Departure:
    """A loss away from its usual distance to the others' for eight rows or more."""

    rank: int
    step: int
    last_step: int
    """Last step before half of the rise is gone."""
    rise: float
    """Over the usual distance [nat]."""
    z: float
    """The same in robust deviations of the distance."""


def departure(table: RankTable) -> Departure | None:
    """The first rank, in their order, whose loss leaves its usual distance to the others' loss; None with few rows.

    Distances are shares of the others' loss, with which noise shrinks. A rank may have harder data from the start: it must
    have been at its usual distance in rows before. Of two ranks it is the one that moves against its own past.
    """
    if len(table.step) < 4 * STRETCH:
        return None
    for r in range(len(table.ranks)):
        found = _of_rank(table, r)
        if found is not None:
            return found
    return None


def _of_rank(table: RankTable, r: int) -> Departure | None:
    rest = np.delete(table.value, r, axis=1)
    others = column_median(np.where(np.isfinite(rest), rest, np.nan).T)
    use = np.flatnonzero(np.isfinite(table.value[:, r]) & np.isfinite(others))
    if len(use) < 4 * STRETCH:
        return None
    own, level = table.value[use, r], running_median(np.abs(others[use]), STRETCH, centre=True)
    apart = (own - others[use]) / np.maximum(level, 1e-12)
    noise = max(row_noise(apart), 1e-12)
    windows = np.lib.stride_tricks.sliding_window_view(apart, STRETCH)
    usually = np.concatenate([[np.inf], running_median(apart, USUAL)[: len(windows) - 1]])
    usually[: 2 * STRETCH] = np.inf
    high = windows - usually[:, None]
    middle = np.median(high, axis=1)
    usual = np.concatenate([np.zeros(STRETCH, bool), middle[:-STRETCH] <= APART_SHARE / 2])
    starts = (
        ((high > APART * noise).sum(axis=1) >= HITS)
        & (middle > max(APART_SHARE, 2 * APART * noise, WANDERS * mad_sigma(middle[middle <= APART_SHARE])))
        & (high[:, 0] > APART * noise)
        & np.logical_or.accumulate(usual)
    )
    first = int(np.argmax(starts))
    if not starts[first] or (len(table.ranks) == 2 and not _moves(own, others[use], first)):
        return None
    share = float(middle[first])
    back = np.flatnonzero(np.median(windows[first:], axis=1) - usually[first] < share / 2)
    last = first + int(back[0]) if len(back) else -1
    rise = share * float(np.median(level[first : first + STRETCH]))
    return Departure(table.ranks[r], int(table.step[use[first]]), int(table.step[use[last]]), rise, share / noise)


def _moves(own: Floats, other: Floats, first: int) -> bool:
    """Whether, of two ranks, the loss `own` changes more than `other` in the stretch from row `first` on, against that before."""
    change = [np.median(v[first : first + STRETCH]) - np.median(v[first - STRETCH : first]) for v in (own, other)]
    return bool(abs(change[0]) > abs(change[1]))
