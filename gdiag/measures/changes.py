"""Slow changes of a learning curve's level: rises without a spike, and the lack of any progress."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gdiag.measures.baseline import MAD_TO_SIGMA, MEDIAN_ERROR, Floats, row_noise, running_median
from gdiag.measures.curves import Curve


@dataclass(frozen=True, slots=True)
class Blocks:
    """A curve as medians of equal blocks of rows, the last block ending with the curve."""

    level: Floats
    first_row: NDArray[np.int64]
    rows: int
    """Rows per block."""
    error: float
    """Standard error of one block's median: from the scatter in the blocks or between neighbours, the larger."""


@dataclass(frozen=True, slots=True)
class Rise:
    """A curve that ends above its best level, reached without a spike."""

    onset: int
    """Row from which it rises."""
    best: float
    end: float
    error: float
    """Standard error of the two levels."""

    @property
    def height(self) -> float:
        """How far the end lies above the best level."""
        return self.end - self.best


@dataclass(frozen=True, slots=True)
class Learning:
    """What a loss curve gained over the run."""

    first: float
    """Level of the first rows."""
    best: float
    """Lowest block."""
    end: float
    """Level of the last fifth."""
    flat_from: int
    """Row from which the level stays within a hundredth of the whole gain (or three standard errors) of the end."""
    flat_share: float
    """Share of the run after `flat_from`."""
    error: float
    slope: float
    """Change per e-fold of rows over the flat part."""

    @property
    def gain(self) -> float:
        """How far the level fell."""
        return self.first - self.end


def blocks(value: Floats, rows: int | None = None) -> Blocks:
    """Medians of blocks: fifty of them, each 4 to 2,000 rows."""
    size = rows or int(np.clip(len(value) // 50, 4, 2000))
    count = len(value) // size
    start = len(value) - count * size
    cells = value[start:].reshape(count, size)
    level = np.median(cells, axis=1)
    inside = MAD_TO_SIGMA * float(np.median(np.abs(cells - level[:, None]))) if count else 0.0
    between = row_noise(level) if len(level) > 5 else 0.0
    error = max(MEDIAN_ERROR * inside / np.sqrt(size), between, 1e-12)
    return Blocks(level, start + size * np.arange(count, dtype=np.int64), size, error)


def slow_rise(
    value: Floats, masked: NDArray[np.bool_], *, errors: float = 6.0, least_share: float = 0.015
) -> Rise | None:  # fmt: skip
    """The rise at the end of `value` above its best level, None where there is none.

    Blocks are tried in two sizes, fifty and twenty to a run. The last three must lie over the best
    level (median of three blocks) by `errors` standard errors, by `least_share` of what the run gained before, and by
    twice any earlier upswing of the same run: a curve that wanders is no divergence. Rows `masked` (episodes) are left
    out.
    """
    kept = np.flatnonzero(~masked)
    if len(kept) < 60:
        return None
    fine = _rise(blocks(value[kept]), kept, errors, least_share)
    return fine or _rise(blocks(value[kept], len(kept) // 20), kept, errors, least_share)


def _rise(held: Blocks, kept: NDArray[np.int64], errors: float, least_share: float) -> Rise | None:
    count = len(held.level)
    smooth = running_median(held.level, 3, centre=True)
    warm = max(1, count // 10)
    best = warm + int(np.argmin(smooth[warm : count - 2]))
    end = float(np.median(held.level[-3:]))
    height = end - float(smooth[best])
    gain = max(0.0, float(np.median(held.level[:2])) - float(smooth[best]))
    before = smooth[warm : best + 1]
    upswing = float(np.max(before - np.minimum.accumulate(before))) if len(before) else 0.0
    least = max(errors * held.error, least_share * gain, 2 * upswing)
    if height <= least or float(held.level[-3:].min()) <= float(smooth[best]) + 0.5 * height:
        return None
    onset = _hinge(smooth, best)
    return Rise(int(kept[held.first_row[onset]]), float(smooth[best]), end, held.error)


def _hinge(level: Floats, best: int) -> int:
    """Block at which a falling or flat line turns into a rising one: least squares over the blocks around `best`."""
    start = max(0, best - 12)
    part = level[start:]
    at = np.arange(len(part), dtype=np.float64)
    errors: list[float] = []
    turns = range(1, len(part) - 2)
    for turn in turns:
        design = np.column_stack([np.ones_like(at), np.minimum(at - turn, 0), np.maximum(at - turn, 0)])
        solution = np.linalg.lstsq(design, part, rcond=None)[0]
        errors.append(float(np.sum((design @ solution - part) ** 2)))
    return start + turns[int(np.argmin(errors))] if errors else best


def learning(value: Floats) -> Learning | None:
    """What `value` gained, and from where on it gains no more; None for fewer than 60 rows."""
    rows = len(value)
    if rows < 60:
        return None
    held = blocks(value)
    first = float(np.median(value[: max(3, min(10, rows // 50))]))
    end = float(np.median(value[-(rows // 5) :]))
    near = max(0.01 * abs(first - end), 3 * held.error)
    smooth = running_median(held.level, 3, centre=True)
    away = np.flatnonzero(np.abs(smooth - end) > near)
    block = int(away[-1]) + 1 if len(away) else 0
    flat_from = int(held.first_row[block]) if block < len(held.first_row) else rows - 1
    when = (held.first_row[block:] + held.rows / 2).astype(np.float64)
    slope = change_per_fold(held.level[block:], when) if len(held.level) - block >= 6 else 0.0
    return Learning(first, float(smooth.min()), end, flat_from, 1 - flat_from / rows, held.error, slope)


def change_per_fold(value: Floats, row: Floats) -> float:
    """Change of `value` per e-fold of `row` (at least three values): its last third against its first."""
    third, when = len(value) // 3, np.log(row + 1.0)
    change = np.median(value[-third:]) - np.median(value[:third])
    return float(change / (np.mean(when[-third:]) - np.mean(when[:third])))


STILL_TO_COME = 0.25
"""Share of the fall of the loss after a step from which a gradient norm that grew there is no instability."""


LEARNT = 0.1
"""Share of its first level by which a loss must fall somewhere for the run to have learned."""


def learned_between(loss: Curve, step: int, last: int, rows: int = 20) -> float:
    """Share of all that `loss` ever fell that it fell from `step` to `last`, in medians of `rows`, whatever became of it later.

    0 for few rows, and for a run that never learned.
    """
    at, end = (int(i) for i in np.searchsorted(loss.step, [step, last + 1]))
    if len(loss) < 2 * rows or end - at < rows:
        return 0.0
    level = running_median(loss.value, rows)[rows - 1 :]
    first, there = (
        float(np.median(loss.value[: max(3, rows // 4)])),
        float(np.median(loss.value[max(0, at - rows) : at + 1])),
    )
    fall = first - float(level.min())
    within = there - float(running_median(loss.value[at:end], rows)[rows - 1 :].min())
    return max(0.0, within / fall) if fall > LEARNT * abs(first) else 0.0


def learned_after(loss: Curve, step: int, rows: int = 20) -> float:
    """Share of the whole fall of `loss` that comes after `step`, in medians of `rows`, up to its first non-finite value.

    0 where it ends no lower than it began, rises again by a quarter of that fall, or rows are few.
    """
    value, at, lost = loss.value, int(np.searchsorted(loss.step, step)), loss.nonfinite.step
    if (lost >= step).any():
        value = value[loss.step < lost[lost >= step][0]]
    if len(value) < 2 * rows or at >= len(value) - rows:
        return 0.0
    after = running_median(value[at:], rows)[rows - 1 :]
    first, last = float(np.median(value[: max(3, rows // 4)])), float(after[-1])
    there = float(np.median(value[max(0, at - rows) : at + 1]))
    fall = first - last
    return (there - last) / fall if fall > 0 and float(after.max()) < there + 0.25 * fall else 0.0
