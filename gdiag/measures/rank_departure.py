"""The rank whose loss leaves its own usual distance to the other ranks', and stays away: above them or below."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gdiag.measures.baseline import Floats, mad_sigma, row_noise, running_median
from gdiag.measures.layers import column_median
from gdiag.measures.ranks import RankTable, rank_deviation

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


BLOCK_ROWS = (8, 32)
"""Rows whose medians are compared where a rank sinks slowly: a twelfth of the run's, within these bounds."""
LEAST_BLOCKS = 3
"""Blocks before and after."""
SUNK, SUNK_WANDERS = 0.4, 6.0
"""How far below its usual distance the gradient norm must stay, in log units and in deviations of earlier block medians …"""
LOSS_WANDERS = 4.0
"""… and the loss, in such deviations of the median over all blocks after."""


@dataclass(frozen=True, slots=True)
class Sinking:
    """A rank whose own gradient norm and loss fall below the other ranks' and stay there."""

    rank: int
    step: int
    last_step: int
    ratio: float
    """Median gradient norm after, as a share of its usual one among the ranks."""
    fall: float
    """Median distance of the loss to the others' after, below that before [nat]."""
    z: float
    """Smallest distance of a later block of the gradient norm, in deviations of the earlier blocks."""


def sinking(norms: RankTable, losses: RankTable) -> Sinking | None:
    """The rank that learns its data by heart: the clearest whose gradient norm and loss both stay below to the end.

    Norms alone do not tell: ranks that hold other parts of the model have norms that drift apart.
    """
    shared = np.intersect1d(norms.step, losses.step)
    ranks = [r for r in norms.ranks if r in losses.ranks]
    block = int(np.clip(len(shared) // 12, *BLOCK_ROWS))
    if len(ranks) < 2 or len(shared) < 2 * LEAST_BLOCKS * block:
        return None
    grad = rank_deviation(norms)[np.searchsorted(norms.step, shared)]
    found = []
    for r in ranks:
        away = _sunk(grad[:, norms.ranks.index(r)], block)
        if away is None:
            continue
        first, ratio, z = away
        if len(norms.ranks) == 2 and not _moved_more(norms, r, int(shared[first]), block):
            continue
        apart = _distance(losses, losses.ranks.index(r))[np.searchsorted(losses.step, shared)]
        before, after = _block_medians(apart[:first], block), _block_medians(apart[first:], block)
        fall = float(np.median(before) - np.median(after))
        if fall > LOSS_WANDERS * max(mad_sigma(before), 1e-12) / np.sqrt(len(after)):
            found.append(Sinking(r, int(shared[first]), int(shared[-1]), ratio, fall, z))
    return max(found, key=lambda s: s.z, default=None)


def _sunk(change: Floats, block: int) -> tuple[int, float, float] | None:
    """(first row, ratio, z) of the stretch to the end over which `change` (n,) stays below what it was; None without one."""
    level = _block_medians(change, block)
    highest = np.maximum.accumulate(level[::-1])[::-1]
    for turn in range(LEAST_BLOCKS, len(level) - LEAST_BLOCKS + 1):
        before, after = level[:turn], level[turn:]
        usual = float(np.median(before))
        if not highest[turn] < usual - SUNK:
            continue
        wander = max(mad_sigma(before), mad_sigma(change[: turn * block]) / np.sqrt(block), 1e-9)
        bound = max(SUNK, SUNK_WANDERS * wander)
        if float(after.max()) < usual - bound:
            start = (turn - 1) * block
            smooth = running_median(change[start:], 8, centre=True)
            low = np.flatnonzero(smooth > usual - bound / 2)
            held = low[low < 2 * block]
            first = start + (int(held[-1]) + 1 if len(held) else 0)
            return first, float(np.exp(np.median(after) - usual)), (usual - float(after.max())) / wander
    return None


def _moved_more(norms: RankTable, rank: int, step: int, rows: int) -> bool:
    """Whether, of two ranks, the norm of `rank` changed more at `step` than the other's: else the other one rose."""
    at = int(np.searchsorted(norms.step, step))
    with np.errstate(divide="ignore", invalid="ignore"):
        change = [
            abs(float(np.log(_median(part[at : at + rows]) / _median(part[max(0, at - rows) : at]))))
            for part in norms.value.T
        ]
    own = norms.ranks.index(rank)
    return change[own] > change[1 - own]


def _block_medians(value: Floats, rows: int) -> Floats:
    return np.array([_median(part) for part in np.array_split(value, max(1, len(value) // rows))])


def _median(value: Floats) -> float:
    finite = value[np.isfinite(value)]
    return float(np.median(finite)) if len(finite) else float("nan")


def _distance(table: RankTable, r: int) -> Floats:
    """The loss of the rank at `r` minus the median of the other ranks' [nat]; shape (n,)."""
    rest = np.delete(np.where(np.isfinite(table.value), table.value, np.nan), r, axis=1)
    return np.asarray(table.value[:, r] - column_median(rest.T), dtype=np.float64)
