"""Single rows of the loss that are events: a garbled batch, told from the tail of hard batches every run has."""

from __future__ import annotations

from math import factorial

import numpy as np

from gdiag.measures.baseline import Floats
from gdiag.measures.curves import Path
from gdiag.measures.data import own_history_z
from gdiag.measures.episodes import SCALES, Scan, scan
from gdiag.measures.segments import interval

LONE_Z = 20.0
"""A single row that far out may be no hard batch: in 25 healthy runs (110,000 rows) single rows reach 18 …"""
LONE_CHANCE = 3e-5
"""… where the tail of the run's own outliers gives such a row in so small a share of runs,"""
LONE_CHANCE_JOINT = 0.003
"""or in that share where the gradient norm stands out in the same row,"""
LONE_SHARE = 0.03
"""… by that share of what the run has gained."""
LONE_Z_JOINT, LONE_GRADIENT_Z = 6.0, 8.0
"""… or over these where loss and gradient norm have their farthest row in common, …"""
LONE_SHARE_JOINT = 0.01
"""… by that share of what the run has gained, …"""
LONE_CHANCE_EACH = 0.03
"""… and the tail of each column gives such a row in this share of runs. Where no other row is raised in both, the columns
are taken as independent and the product of the two counts. The nearest in 25 healthy runs is 8.4 and 29.9, and 18 more
rows of that run are raised in both."""
TIE_Z = 4.0
"""Rows over this in loss and gradient norm are raised in both."""
JOINT_Z, JOINT_GRADIENT_Z = 5.0, 8.0
"""Loss and log gradient norm this far out in one row, and …"""
JOINT_NEXT_Z, JOINT_NEXT_GRADIENT_Z = 2.5, 4.0
"""… one of them this far in the next."""
JOINT_CHANCE = 0.05
"""So many stretches of that kind are expected at most where the run's other rows are raised independently."""
PAIR_Z = 6.0
"""Two rows in a row over this are a spike with a short tail, …"""
PAIR_BACK_Z = 3.0
"""The rows after it are below this on average, else it is part of a level that stays up."""
PAIR_CHANCE = 0.001
"""… where chance gives that many pairs in so small a share of runs, given how often the other rows are as high. In 25
healthy runs (110,000 rows) one pair reaches 5.9, in a run with 132 rows that high."""
TAIL_Z = 4.0
"""Rows over this make up the tail."""
TAIL_ROWS = 10
"""So many of the farthest give the tail's exponent."""
PROVEN_Z = 6.0
"""A lone row whose batch has a token entropy this far from its own history is a garbled batch at any height over that."""
HABIT_ROWS = 3
"""So many lone rows below the loss that the run began with are a habit of the data as well: a harmed model does not come
back within one row each time, and a hard batch is no worse than one that nothing was learned of."""
MOST_LONE = 10
"""Rows beyond this many are a habit of the data."""


def lone_rows(path: Path, found: Scan, start: float) -> list[int]:
    """Outliers so far out that no tail of hard batches explains them, farthest first.

    Args:
        path: where the gradient norm is looked up.
        found: the scan of the path's loss.
        start: the loss at the start of the run, nat.
    """
    rows = found.outliers
    proven = _proven(path, found)
    if not len(rows) or found.z[rows].max() < LONE_Z:
        return proven or _in_both(path, found, start)
    outside = np.arange(len(found.z)) >= found.warmup
    for episode in found.episodes:
        outside[episode.onset : episode.last + 1] = False
    tail = np.sort(found.z[(found.z > TAIL_Z) & outside])[::-1]
    joint = {step for step, deviation in _gradient_z(path).items() if deviation > JOINT_GRADIENT_Z}
    steps = path.curve("loss").step
    chosen: list[int] = []
    for row in rows[np.argsort(found.z[rows])[::-1]][:MOST_LONE].tolist():
        z = float(found.z[row])
        excess = z * float(found.base.scale[row])
        if z < LONE_Z or excess < LONE_SHARE * max(0.0, start - float(found.base.level[row])):
            break
        chosen.append(row)
    known = min(1.0, len(found.z) / 500) ** 2  # a short log has hardly shown its tail
    while chosen and _by_chance(tail, len(chosen), float(found.z[chosen[-1]])) >= known * (
        LONE_CHANCE_JOINT if int(steps[chosen[-1]]) in joint else LONE_CHANCE
    ):
        chosen.pop()
    ordinary = bool(chosen) and all(found.z[r] * found.base.scale[r] < start - found.base.level[r] for r in chosen)
    if len(chosen) >= HABIT_ROWS and ordinary:
        return proven
    return chosen + [row for row in proven if row not in chosen]


def _in_both(path: Path, found: Scan, start: float) -> list[int]:
    """The farthest row, where it is the farthest of the gradient norms as well and the columns' tails do not explain it."""
    row = int(found.outliers[found.z[found.outliers].argmax()]) if len(found.outliers) else -1
    gradient = _gradient_z(path)
    if row < 0 or found.z[row] < LONE_Z_JOINT or len(found.z) < 200 or not gradient:
        return []
    if found.z[row] * found.base.scale[row] < LONE_SHARE_JOINT * max(0.0, start - float(found.base.level[row])):
        return []
    steps = path.curve("loss").step
    norm = np.array([gradient.get(step, 0.0) for step in steps.tolist()])
    judged = np.arange(len(norm)) >= found.warmup
    own = float(norm[row])
    if own < LONE_GRADIENT_Z or own < norm[judged].max():
        return []
    loss_tail, norm_tail = (np.sort(z[judged & (z > TAIL_Z)])[::-1] for z in (found.z, norm))
    chances = _by_chance(loss_tail, 1, float(found.z[row])), _by_chance(norm_tail, 1, own)
    tied = int(np.sum(judged & (found.z > TIE_Z) & (norm > TIE_Z))) > 1
    if tied:
        return [row] if max(chances) < LONE_CHANCE_EACH else []
    return [row] if chances[0] * chances[1] < LONE_CHANCE_EACH**2 else []


def _proven(path: Path, found: Scan) -> list[int]:
    """Outliers whose batch differs from all others by its own statistic: two columns that nothing else moves together."""
    told = [curve for name in ("token_entropy", "duplicate_share") if len(curve := path.curve(name))]
    steps = path.curve("loss").step
    if not told:
        return []
    rows = found.outliers[found.z[found.outliers] > PROVEN_Z]
    rows = rows[np.argsort(found.z[rows])[::-1]][:MOST_LONE]
    odd = [max(abs(own_history_z(curve, step) or 0.0) for curve in told) for step in steps[rows].tolist()]
    return [int(row) for row, z in zip(rows.tolist(), odd, strict=True) if z > PROVEN_Z]


def _by_chance(tail: Floats, lone: int, z: float) -> float:
    """Expected number of rows over `z` in a run whose outliers have the tail of the others.

    The geometric mean of a power law (Hill's estimate, held near an exponent of 3.3 by two outliers' worth of prior, so
    that few outliers prove little) and of an exponential tail: real tails lie between the two.

    Args:
        tail: deviations over TAIL_Z, largest first.
        lone: how many of the largest are the ones in question.
        z: the smallest of those.
    """
    rest = tail[lone:]
    start = float(rest[TAIL_ROWS]) if len(rest) > TAIL_ROWS else TAIL_Z
    rest = rest[:TAIL_ROWS]
    exponent = (len(rest) + 2.0) / (float(np.log(rest / start).sum()) + 0.6)
    mean = (float((rest - start).sum()) + 4.0) / (len(rest) + 2.0)
    power, light = (z / start) ** -exponent, np.exp(-min(30.0, (z - start) / max(mean, 0.5)))
    return float((len(rest) + 1) * np.sqrt(power * light))


def joint_stretches(path: Path, found: Scan) -> list[tuple[int, int]]:
    """Two rows and more in which loss and gradient norm stand out together: (first, last) row, inclusive.

    Too short for the scan (a spike of twenty steps in a log of every tenth), yet no hard batch: the batches of two logged
    rows have nothing to do with one another. A log of every step shows such a spike in more rows and needs no such rule.
    """
    z = found.z
    steps = path.curve("loss").step
    gradient = _gradient_z(path) if interval(steps) > 1 else {}
    if not gradient:
        return []
    norm = np.array([gradient.get(step, 0.0) for step in steps.tolist()])
    free = np.arange(len(z)) >= found.warmup
    for episode in found.episodes:
        free[episode.onset : episode.last + 1] = False
    high, steep = z >= JOINT_NEXT_Z, norm >= JOINT_NEXT_GRADIENT_Z
    starts = free & (z >= JOINT_Z) & (norm >= JOINT_GRADIENT_Z)
    stretches: list[tuple[int, int]] = []
    for row in np.flatnonzero(starts).tolist():
        if stretches and row <= stretches[-1][1]:
            continue
        last = row
        while last + 1 < len(z) and (high | steep)[last + 1]:
            last += 1
        if last > row:
            stretches.append((row, last))
    follows = np.concatenate([[False], starts[:-1]])
    for first, last in stretches:
        follows[first : last + 1] = True
    others = free & ~follows
    share = np.where(high & steep, np.mean((high & steep)[others]), np.mean((high | steep)[others]))
    # How many such stretches chance gives where the rows of this run are raised independently.
    return [(a, b) for a, b in stretches if starts.sum() * np.prod(share[a + 1 : b + 1]) < JOINT_CHANCE]


def raised_pairs(found: Scan, start: float) -> list[tuple[int, int]]:
    """Two rows and more in a row that are far out by the loss alone: (first, last) row, inclusive.

    The scan needs four raised rows, a spike that is over in two or three stays below it. Hard batches come one by one, so
    that two at once are rarer by the share of rows that are hard.

    Args:
        found: the scan of the loss.
        start: the loss at the start of the run, nat.
    """
    z, base = found.z, found.base
    free = np.arange(len(z)) >= found.warmup
    for episode in found.episodes:
        free[episode.onset : episode.last + 1] = False
    high = free & (z > PAIR_Z)
    firsts = np.flatnonzero(high & ~np.concatenate([[False], high[:-1]]) & np.concatenate([high[1:], [False]]))
    stretches: list[tuple[int, int]] = []
    for first in firsts.tolist():
        low = high[first:].argmin()
        last = first + int(low) - 1 if low else len(z) - 1
        gained = max(0.0, start - float(base.level[first]))
        back = z[last + 1 : last + 1 + SCALES[0]]
        high_enough = z[first : last + 1].max() * base.scale[first] >= LONE_SHARE * gained
        if high_enough and last - first + 1 < SCALES[0] and len(back) and back.mean() < PAIR_BACK_Z:
            stretches.append((first, last))
    others = free.copy()
    for first, last in stretches:
        others[first : last + 1] = False
    stretches.sort(key=lambda rows: -float(z[rows[0] : rows[1] + 1].min()))
    while stretches:
        least = float(z[stretches[-1][0] : stretches[-1][1] + 1].min())
        # The farthest of many far rows are next to one another as often as any two: rows half as far count as well.
        share = (float(np.sum(z[others] >= max(PAIR_Z, least / 2))) + 1.0) / max(1, int(others.sum()))
        expected = len(z) * share**2
        if expected ** len(stretches) / factorial(len(stretches)) < PAIR_CHANCE:
            break
        stretches.pop()
    return stretches


def _gradient_z(path: Path) -> dict[int, float]:
    """Step → deviation of the logarithm of the gradient norm in robust standard deviations; empty below 30 rows."""
    curve = path.curve("grad_norm")
    positive = curve.finite.keep(curve.value > 0)
    if len(positive) < 30:
        return {}
    return dict(zip(positive.step.tolist(), scan(np.log(positive.value)).z.tolist(), strict=True))
