"""Values across ranks: what must agree between replicas and does not, and ranks that stand out.

After the gradients are reduced every data-parallel replica holds the same weights, the same reduced norm and the same
loss scale; losses and norms before the reduction are each rank's own and agree only roughly. Which of the two a column
is, is learnt from the column itself: one that has agreed so far must go on agreeing.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb

import numpy as np
import polars as pl
from numpy.typing import NDArray

from gdiag.measures.layers import FIRST_ROWS, Floats, Steps, column_median, row_median, spans

AGREED_COLUMNS = ("param_checksum", "param_norm", "grad_norm", "grad_norm_clipped", "loss_scale", "lr", "skipped")
"""Columns that replicas share when they are logged after the reduction, in order of what they prove."""
LEAST_AGREED = 8
"""Rows of agreement after which a disagreement means something."""
MOVES_EVENLY = ("param_checksum", "param_norm")
"""Columns that the optimizer moves by about as much every row, so that their course says which of two ranks left it."""
COURSE_ROWS = 40
"""Rows of agreement that the course is taken from; half of them at least."""
LEAP, CALM = 4.0, 1.5
"""Moves, in the most of those rows beyond their median, of a rank that left and of one that went on."""


@dataclass(frozen=True, slots=True)
class RankTable:
    """One quantity by step and rank."""

    step: Steps
    ranks: tuple[int, ...]
    value: Floats
    """(steps, ranks); NaN where not logged or logged NaN."""
    logged: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Replicas that no longer hold the same value."""

    column: str
    row: int
    step: int
    last_step: int
    """Last step at which they disagree."""
    ranks: tuple[int, ...]
    """Ranks that left the majority; all of them when there is none."""
    majority: int
    """Ranks that still agree."""
    deviation: float
    """Largest relative difference from the majority at the first row."""
    last_deviation: float
    leap: float
    """What the ranks that left moved by in that row, in the most that such a row moved by before: how an even split was
    decided; 0 where the majority did."""
    rows: int
    """Rows that disagree."""
    agreed_rows: int
    """Rows that agreed before."""


@dataclass(frozen=True, slots=True)
class Outlier:
    """A rank's value far from the other ranks' median, beyond what is usual between them."""

    row: int
    step: int
    rank: int
    ratio: float
    z: float


def by_rank(frame: pl.DataFrame, column: str, least_rows: int = 5) -> RankTable | None:
    """`column` of all ranks side by side (last writing of a step); None with fewer than two ranks or `least_rows` rows."""
    if column not in frame.columns or "rank" not in frame.columns:
        return None
    rows = frame.select("rank", "step", column).filter(
        pl.col("rank").is_not_null() & pl.col("step").is_not_null() & pl.col(column).is_not_null()
    )
    if rows["rank"].n_unique() < 2:
        return None
    ranks = sorted(rows["rank"].unique().to_list())
    wide = rows.unique(["rank", "step"], keep="last").pivot(on="rank", index="step", values=column).sort("step")
    wide = wide.select("step", *(str(r) for r in ranks))
    if wide.height < least_rows:
        return None
    values = wide.drop("step")
    logged = values.select(pl.all().is_not_null()).to_numpy()
    return RankTable(wide["step"].to_numpy(), tuple(ranks), values.to_numpy().astype(np.float64), logged)


def disagreement(table: RankTable, column: str, tolerance: float = 1e-6) -> Disagreement | None:
    """The first row from which replicas that agreed do not; None when they never agreed or always do.

    Values agree when they differ from the row's median by no more than `tolerance` of it; a value that is not finite on
    some ranks only disagrees. A column that did not agree in the LEAST_AGREED rows before is each rank's own. Ranks apart
    from the first row on are told only where the same ones stay apart and at least two others agree.
    """
    value, apart = table.value, _apart(table, tolerance)
    both = table.logged.sum(axis=1) >= 2
    bad = apart.any(axis=1) & both
    if not bad.any():
        return None
    row = int(bad.argmax())
    agreed = int(np.count_nonzero(~bad[:row] & both[:row]))
    present = table.logged[row]
    leaving = apart[row] & present
    majority = int(np.count_nonzero(present & ~leaving))
    if agreed < LEAST_AGREED and not (agreed == 0 and majority >= 2 and _same_later(apart, both, leaving)):
        return None
    leap = 0.0
    if majority <= np.count_nonzero(leaving):
        leaving, leap = _leapt(table, row, both & ~bad) if column in MOVES_EVENLY else (present, 0.0)
        majority = int(np.count_nonzero(present & ~leaving))
    end = len(bad) - 1 - int(bad[::-1].argmax())
    return Disagreement(
        column, row, int(table.step[row]), int(table.step[end]), tuple(np.asarray(table.ranks)[leaving].tolist()), majority,
        _deviation(value[row], table.logged[row]), _deviation(value[end], table.logged[end]), leap,
        int(np.count_nonzero(bad)), agreed,
    )  # fmt: skip


def _leapt(table: RankTable, row: int, agreed: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], float]:
    """Which ranks moved in `row` as no row before did while the others went on, and by how many times the most of those.

    All logged ones and 0 where the column's course does not tell them apart: a hash, say, moves by anything.
    """
    present = table.logged[row]
    before = np.flatnonzero(agreed[:row])[-COURSE_ROWS:]
    shared = np.array([table.value[i, table.logged[i].argmax()] for i in before])
    if len(shared) < COURSE_ROWS // 2 or before[-1] != row - 1:
        return present, 0.0
    moves = np.diff(shared)
    usual = float(np.median(moves))
    most = float(np.abs(moves - usual).max())
    if not 0 < most < np.inf:
        return present, 0.0
    with np.errstate(invalid="ignore"):
        times = np.where(present, np.abs(table.value[row] - shared[-1] - usual) / most, 0.0)
    times[np.isnan(times)] = np.inf
    far, calm = present & ~(times < LEAP), present & (times <= CALM)
    if not far.any() or not calm.any() or (present & ~far & ~calm).any():
        return present, 0.0
    return far, float(np.min(times[far]))


def _apart(table: RankTable, tolerance: float) -> NDArray[np.bool_]:
    """Which ranks are off the value that most ranks of the row share (the median where no value repeats)."""
    value = np.where(np.isfinite(table.value), table.value, np.nan)
    center = row_median(value)
    low = np.sort(value, axis=1)
    if value.shape[1] > 2:  # with an even split the median lies between: take the lower middle, a value that was logged
        count = np.count_nonzero(~np.isnan(value), axis=1)
        center = np.where(count > 0, low[np.arange(len(low)), np.maximum(count - 1, 0) // 2], center)
    with np.errstate(invalid="ignore"):
        off = np.abs(value - center[:, None]) > tolerance * np.maximum(np.abs(center), 1e-30)[:, None]
    some_finite = np.isfinite(value).any(axis=1, keepdims=True)
    return (off | (~np.isfinite(value) & some_finite)) & table.logged


def _same_later(apart: NDArray[np.bool_], both: NDArray[np.bool_], leaving: NDArray[np.bool_]) -> bool:
    """Whether the same ranks, and only they, are apart in nearly every row: a replica that was wrong from the start."""
    same = (apart[both] == leaving).all(axis=1)
    return len(same) >= LEAST_AGREED and float(same.mean()) >= 0.9


def _deviation(row: Floats, logged: NDArray[np.bool_]) -> float:
    """Largest relative difference from the lower middle; inf where a logged value is not finite."""
    finite = row[np.isfinite(row)]
    if len(finite) < 2 or len(finite) < np.count_nonzero(logged):
        return float("inf")
    ordered = np.sort(finite)
    center = float(ordered[(len(ordered) - 1) // 2])
    return float(np.max(np.abs(finite - center)) / max(abs(center), 1e-30))


def outliers(table: RankTable, z: float | None = None, ratio: float = 2.0) -> list[Outlier]:
    """Values `ratio` times the median of the other ranks and `z` usual deviations of such a ratio away, in row order.

    z defaults to √(6² + 2 ln ranks). The usual deviation is that of all ranks over the two blocks of rows before, or, of four
    ranks or more, that of the other ranks in the rows around, where it is larger: ranks move apart as a model begins to learn.
    """
    deviation = rank_deviation(table)
    rows, ranks = deviation.shape
    bound = z if z is not None else float(np.sqrt(36 + 2 * np.log(max(1, ranks))))
    scale = np.full(rows, np.nan)
    for start, stop, begin in spans(rows, int(np.clip(rows // 16, 8, 100))):
        past = deviation[begin : max(start, FIRST_ROWS)].reshape(-1, 1)
        scale[start:stop] = 1.4826 * column_median(np.abs(past))[0]
    score = deviation / np.maximum(scale, 1e-3)[:, None]
    with np.errstate(invalid="ignore"):
        hot = (score > bound) & (deviation > np.log(ratio))
        if ranks >= LEAST_PEERS and (rows_hot := np.flatnonzero(hot.any(axis=1))).size:
            score[rows_hot] = np.fmin(
                score[rows_hot], deviation[rows_hot] / np.maximum(_around(deviation, rows_hot), 1e-3)
            )
            hot &= score > bound
    hot[:FIRST_ROWS] = False
    return [
        Outlier(
            int(i), int(table.step[i]), table.ranks[j], float(np.exp(min(700.0, deviation[i, j]))), float(score[i, j])
        )
        for i, j in np.argwhere(hot).tolist()
    ]


def lone_row(table: RankTable, z: float) -> Outlier | None:
    """The outlier, in log units half as far again above the other ranks as any other value of the table; None of few ranks."""
    if len(table.ranks) < LEAST_PEERS:
        return None
    far = np.nan_to_num(rank_deviation(table), nan=0.0, posinf=0.0, neginf=0.0)
    far[:FIRST_ROWS] = 0.0
    most, second = np.sort(far, axis=None)[[-1, -2]]
    if most < LONE * second:
        return None
    row, rank = np.argwhere(far == most)[0]
    hits = outliers(table, z=z, ratio=1.1)
    return next((hit for hit in hits if (hit.row, hit.rank) == (row, table.ranks[rank])), None)


LONE = 1.5
"""How much farther out, in log units, the lone row of a rank stands than any other value."""
LEAST_PEERS = 4
"""Ranks from which the median of the others does not depend on the one that stands out."""
AROUND_ROWS = 4
"""Rows on either side."""


def _around(deviation: Floats, rows: NDArray[np.int64]) -> Floats:
    """Usual size of the deviations of the other ranks in the rows around each of `rows`, shape (len(rows), ranks)."""
    padded = np.pad(np.abs(deviation), ((AROUND_ROWS, AROUND_ROWS), (0, 0)), constant_values=np.nan)
    windows = np.lib.stride_tricks.sliding_window_view(padded, 2 * AROUND_ROWS + 1, axis=0)[rows]
    count, ranks, _ = windows.shape
    if ranks > MANY_RANKS:  # one more or less makes no difference
        return np.broadcast_to(1.4826 * row_median(windows.reshape(count, -1))[:, None], (count, ranks))
    others = [row_median(np.delete(windows, r, axis=1).reshape(count, -1)) for r in range(ranks)]
    found: Floats = 1.4826 * np.stack(others, axis=1)
    return found


MANY_RANKS = 16


def rank_deviation(table: RankTable) -> Floats:
    """log(value / median of the other ranks), shape (steps, ranks); NaN where a value is missing or not positive."""
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(table.value)
    logs[~np.isfinite(logs)] = np.nan
    ranks = logs.shape[1]
    if ranks > MANY_RANKS:
        return logs - row_median(logs)[:, None]
    others = [row_median(np.delete(logs, r, axis=1)) for r in range(ranks)]
    return logs - np.stack(others, axis=1)


def nonfinite_ranks(table: RankTable) -> tuple[int, tuple[int, ...]] | None:
    """(step, ranks) of the first row in which some ranks, not all, hold a value that is not finite."""
    bad = table.logged & ~np.isfinite(table.value)
    some = bad.any(axis=1)
    if not some.any():
        return None
    row = int(some.argmax())
    ranks = tuple(np.asarray(table.ranks)[bad[row]].tolist())
    return (int(table.step[row]), ranks) if len(ranks) < np.count_nonzero(table.logged[row]) else None


def binomial_tail(hits: int, trials: int, chance: float) -> float:
    """P(at least `hits` of `trials`) when each has `chance`."""
    return float(sum(comb(trials, k) * chance**k * (1 - chance) ** (trials - k) for k in range(hits, trials + 1)))
