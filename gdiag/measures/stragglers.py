"""Stragglers: ranks whose own time is longer than that of the others at the same step (diagnosis.md C4).

In synchronous training all ranks end a step together: the slow one computes longest and waits least in collectives.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Literal

import numpy as np
import polars as pl

from gdiag.measures.curves import Floats
from gdiag.measures.segments import Ints

Told = Literal["compute time", "collective wait", "step time"]
MOST_BLOCKS: Final = 300


@dataclass(frozen=True, slots=True)
class Straggler:
    """One rank that is slower than the others for a stretch of the run."""

    rank: int
    step: int
    """First step of the stretch."""
    last_step: int
    ratio: float
    """Own time over the median of the ranks: compute or step time, or (step + time it does not wait) / step."""
    before: float
    """The same ratio before the stretch; nan when the stretch begins with the log."""
    slowest_share: float
    """Share of the stretch's steps in which this rank is the slowest (or waits least)."""
    chance: float
    """1 / ranks."""
    own: float
    """Its usual time in the stretch [s]."""
    others: float
    """Median over ranks of the usual time [s]."""
    told_by: Told
    from_start: bool
    share: float = 1.0
    """Share of the stretch's steps in which it is slow: below one for a rank that is slow now and then."""


@dataclass(frozen=True, slots=True)
class RankTimes:
    """A table of one time per step and rank."""

    steps: Ints
    ranks: Ints
    seconds: Floats
    """(steps, ranks); NaN where not logged."""
    told_by: Told


def rank_times(steps: pl.DataFrame) -> RankTimes | None:
    """The time that tells ranks apart: compute time, else step less collective time, else collective time, else step time.

    None with fewer than two ranks or where all ranks log the same.
    """
    if "rank" not in steps.columns:
        return None
    rows = steps.filter(pl.col("rank").is_not_null() & pl.col("step").is_not_null())
    if rows["rank"].n_unique() < 2:
        return None
    usable = [
        c
        for c in ("compute_time", "comm_time", "step_time")
        if c in rows.columns and rows[c].count() > 0.5 * rows.height
    ]
    for column in usable:
        table = (
            rows.group_by("step", "rank")
            .agg(pl.col(column).last())
            .pivot("rank", index="step", values=column)
            .sort("step")
        )
        names = sorted((c for c in table.columns if c != "step"), key=int)
        seconds = table.select(pl.col(n).cast(pl.Float64).fill_null(float("nan")) for n in names).to_numpy()
        spread = np.nanmax(seconds, axis=1) - np.nanmin(seconds, axis=1)
        if np.nanmedian(spread) > 1e-6 * np.nanmedian(seconds):
            told: Told = {"compute_time": "compute time", "comm_time": "collective wait", "step_time": "step time"}[
                column
            ]  # type: ignore[assignment]
            if told == "collective wait":
                seconds = _without_wait(rows, table, seconds)
            return RankTimes(table["step"].to_numpy(), np.array([int(n) for n in names]), seconds, told)
    return None


def _without_wait(rows: pl.DataFrame, table: pl.DataFrame, wait: Floats) -> Floats:
    """Step time less the time in collectives; where no step time is logged, the least wait counts as the longest own time."""
    if "step_time" in rows.columns and rows["step_time"].count():
        whole = (
            rows.group_by("step")
            .agg(pl.col("step_time").median())
            .join(table.select("step"), on="step", how="right")
            .sort("step")
        )
        return np.asarray(whole["step_time"].to_numpy()[:, None] - wait)
    return np.asarray(2 * np.nanmax(wait) - wait)


def find(table: RankTimes, *, ratio: float = 1.04, blocks: int = 5) -> list[Straggler]:
    """Ranks at least `ratio` times as slow as the median of the ranks over at least `blocks` blocks of steps."""
    count, width = table.seconds.shape
    size = max(1, -(-count // MOST_BLOCKS))
    if count >= 100:
        size = max(size, 5)
    edges = np.arange(0, count + 1, size)
    if len(edges) < blocks + 1:
        return []
    blocked = np.array([np.nanmedian(table.seconds[a:b], axis=0) for a, b in pairwise(edges)])
    middle = _usual(blocked)
    relative = blocked / middle[:, None]
    slowest = np.argmax(np.where(np.isnan(table.seconds), -np.inf, table.seconds), axis=1)
    found = []
    for column in range(width):
        stretch = _stretch(relative[:, column] >= 1 + 0.6 * (ratio - 1), blocks)
        if stretch is None:
            continue
        first, stop = stretch
        level = float(np.nanmedian(relative[first:stop, column]))
        if level < ratio:
            continue
        a, b = _sharpened(table, column, int(edges[first]), int(edges[stop]), size, 0.5 * (1 + level))
        before = float(np.nanmedian(relative[:first, column])) if first >= 2 else float("nan")
        found.append(
            Straggler(
                int(table.ranks[column]), int(table.steps[a]), int(table.steps[b - 1]), level, before,
                float(np.mean(slowest[a:b] == column)), 1 / width, float(np.nanmedian(table.seconds[a:b, column])),
                float(np.nanmedian(middle[first:stop])), table.told_by, first < 2,
            )
        )  # fmt: skip
    often = [
        o for o in _now_and_then(table)
        if not any(s.rank == o.rank and s.last_step - s.step > 0.5 * (o.last_step - o.step) for s in found)
    ]  # fmt: skip
    return sorted([*often, *(s for s in found if s.rank not in {o.rank for o in often})], key=lambda s: s.rank)


def _usual(seconds: Floats) -> Floats:
    """The lower median over ranks: where half of them are slow, the median lies half-way between the two levels."""
    return np.asarray(np.nanquantile(seconds, 0.5, axis=1, method="lower"))


def _now_and_then(table: RankTimes, *, least: int = 10, mine: float = 0.8, share: float = 0.05) -> list[Straggler]:
    """A rank that holds nearly all of the single slow times: at least `least` of them, and the share `mine` of all ranks'."""
    count, width = table.seconds.shape
    if width < 3:
        return []
    middle = _usual(table.seconds)
    relative = table.seconds / middle[:, None]
    noise = 1.4826 * float(np.nanmedian(np.abs(relative - 1)))
    slow = relative > 1 + max(0.1, 6 * noise)
    per_rank = slow.sum(axis=0)
    column = int(np.argmax(per_rank))
    at = np.flatnonzero(slow[:, column])
    if len(at) < least or len(at) < mine * per_rank.sum() or len(at) < share * (at[-1] - at[0] + 1):
        return []
    stretch = slice(int(at[0]), int(at[-1]) + 1)
    largest = np.nanmax(table.seconds[stretch], axis=1)
    return [
        Straggler(
            int(table.ranks[column]), int(table.steps[at[0]]), int(table.steps[at[-1]]), float(np.median(relative[at, column])),
            1.0, float(np.mean(table.seconds[stretch, column] >= largest)), 1 / width,
            float(np.median(table.seconds[at, column])), float(np.median(middle[at])), table.told_by, bool(at[0] < 0.02 * count),
            len(at) / (stretch.stop - stretch.start),
        )
    ]  # fmt: skip


def _stretch(slow: np.ndarray[tuple[int], np.dtype[np.bool_]], least: int) -> tuple[int, int] | None:
    """The longest run of slow blocks, single fast ones inside allowed; None when shorter than `least`."""
    smooth = slow.copy()
    smooth[1:-1] |= slow[:-2] & slow[2:]
    bounds = np.flatnonzero(np.diff(np.concatenate([[False], smooth, [False]]).astype(int)))
    runs = list(zip(bounds[::2], bounds[1::2], strict=True))
    if not runs:
        return None
    first, stop = max(runs, key=lambda r: r[1] - r[0])
    return (int(first), int(stop)) if stop - first >= least else None


def _sharpened(table: RankTimes, column: int, first: int, stop: int, size: int, level: float) -> tuple[int, int]:
    """The first step of the stretch, to the step: where the rank's ratio passes half-way to its new level."""
    low = max(0, first - 2 * size)
    high = min(stop, first + 2 * size)
    ratio = table.seconds[low:high, column] / _usual(table.seconds[low:high])
    cost = np.append(0.0, np.cumsum(np.where(ratio > level, 1.0, -1.0)))
    return low + int(np.argmin(cost)) if first > 0 else first, stop
