"""Parameter norms: steps further than the optimizer can take, growth, and update against weight.

An optimizer moves a norm by no more than its own step, and the step follows the learning rate: a norm that moves many
times further than any step before it, after the learning rate is divided out, was changed by something else.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from gdiag.measures.curves import Curve
from gdiag.measures.layers import Floats, LayerTable, Steps, spans
from gdiag.schema import LayerColumn

MOST_DIGITS = 6
"""Significant digits of a norm beyond which what was written is not asked: 2e-6 of it is the least move that is seen."""
AT_ONCE = 3.0
"""A jump, in the moves of the two rows before it."""
LOOKED_AT = 200
"""Rows that tell how many digits a column is written with."""


@dataclass(frozen=True, slots=True)
class Jump:
    """One layer's norm moved further in one row than in all the rows before."""

    layer: int
    """Index into the table's columns."""
    row: int
    before: float
    after: float
    excess: float
    """Move / largest move of the rows before, both divided by the learning rate where it is logged."""
    single: bool
    """The three moves after it are small again; otherwise the norm moves faster from here on."""

    @property
    def share(self) -> float:
        """Relative change of the norm."""
        return abs(self.after - self.before) / max(abs(self.before), 1e-300)


@dataclass(frozen=True, slots=True)
class Trend:
    """Theil–Sen slope over block medians with its Mann–Kendall score."""

    slope: float
    """Per block."""
    z: float
    total: float
    """Change over the whole stretch: slope × (blocks - 1)."""


def jumps(table: LayerTable, lr: Curve | None = None, factor: float = 10.0, least: float = 1e-3) -> list[Jump]:
    """Every move of a norm `factor` times further than the largest of up to two blocks of rows before.

    Args:
        table: param_norm of all layers.
        lr: learning rate per step; moves are divided by the larger of the rates at both ends, so that a jump of the
            learning rate is no jump of the norm.
        factor: how many times further.
        least: smallest relative change.
    """
    rate = rates(table, lr) * _steps_between(table.step)
    found: list[Jump] = []
    for first, values in table.blocks():
        values = np.where(np.isfinite(values), values, np.nan)
        filled = _forward_filled(values)
        move = np.abs(np.diff(filled, axis=0, prepend=filled[:1]))
        move = np.where(np.isfinite(values), move, np.nan)
        quantum = np.where(move > 0, move, np.inf).min(axis=0, initial=np.inf)  # the last digit written, or less
        floor = np.maximum(2 * last_digit(filled), np.where(np.isfinite(quantum), 2 * quantum, 0.0))
        pace = np.maximum(move, floor) / rate[:, None]
        for start, stop, begin in spans(len(values), _block(len(values))):
            if start < 8:
                continue
            with np.errstate(invalid="ignore"):
                most = np.fmax.reduce(pace[begin:start], axis=0)
                here = (pace[start:stop] > factor * most) & (move[start:stop] > least * np.abs(filled[start - 1]))
                # A norm that grows from row to row gets as far as well by the end of a stretch, but not at once.
                here &= pace[start:stop] > AT_ONCE * np.fmax(pace[start - 1 : stop - 1], pace[start - 2 : stop - 2])
            for i, j in np.argwhere(here).tolist():
                row = start + i
                after = pace[row + 1 : row + 4, j]
                # None are left where the jump is the last row, or turns all that follows into NaN.
                after = after[np.isfinite(after)]
                single = len(after) == 0 or float(np.median(after)) < 0.2 * float(pace[row, j])
                excess = float(pace[row, j] / most[j])
                found.append(Jump(first + j, row, float(filled[row - 1, j]), float(values[row, j]), excess, single))
    return found


NEAR = 0.05
"""Distance of the weights after a jump from those of an earlier row, over that from those of the row before, from which they are
the earlier ones: norms of layers drawn anew differ by 1 % or less from those the run began with."""


def like_row(table: LayerTable, row: int) -> int | None:
    """The row before `row` - 8 whose norms of layers those of `row` are closest to; None where they are no nearer than to the row before.

    Distances are medians over the layers of the change of the norm's logarithm.
    """
    parts = []
    for _, values in table.blocks():
        with np.errstate(divide="ignore", invalid="ignore"):
            parts.append(np.abs(np.log(values[:row]) - np.log(values[row])))
    with np.errstate(invalid="ignore"):
        distance = np.nanmedian(np.concatenate(parts, axis=1), axis=1)
    if len(distance) < 16 or not np.isfinite(distance).all():
        return None
    nearest = int(np.argmin(distance[:-8]))
    return nearest if distance[nearest] < NEAR * distance[-1] else None


def last_digit(values: Floats) -> Floats:
    """One unit in the last significant digit of each of `values`, (rows, columns), where a column has so few; 1e-6 of it else.

    A norm that is written with three digits moves by a whole unit or not at all, and by ten times that above a power of ten.
    """
    some = values[:: max(1, len(values) // LOOKED_AT)]
    unit: Floats = np.abs(values) * 10.0**-MOST_DIGITS
    for column in range(values.shape[1]):
        here = some[np.isfinite(some[:, column]), column]
        for digits in range(2, MOST_DIGITS):
            units = here / _unit(here, digits)
            if np.abs(units - np.round(units)).max(initial=0.0) < 1e-6:
                unit[:, column] = _unit(values[:, column], digits)
                break
    return unit


def _unit(values: Floats, digits: int) -> Floats:
    """10^n, one unit in the last of so many significant digits; of 0 as of 1."""
    size = np.abs(values)
    there: Floats = 10.0 ** (np.floor(np.log10(np.where(size > 0, size, 1.0))) - digits + 1)
    return there


def _steps_between(step: Steps) -> Floats:
    """Steps that led to each row over the usual number, 1 and more: over a gap in the log a norm moves further."""
    between = np.diff(step, prepend=step[:1] - 1).astype(np.float64)
    usual = float(np.median(between[1:])) if len(step) > 1 else 1.0
    apart: Floats = np.maximum(1.0, between / max(usual, 1.0))
    return apart


def whole_network(curve: Curve) -> LayerTable:
    """A parameter norm of all parameters together as a table of one nameless layer."""
    column = LayerColumn("param_norm:", "", "param_norm", None, "other")
    frame = pl.DataFrame({column.column: curve.value})
    return LayerTable((column,), curve.step, frame, curve.finite.line, curve.finite.source)


def rates(table: LayerTable, lr: Curve | None) -> Floats:
    """Learning rate that led to each row, the larger of both ends; ones where it is not logged. Shape (n,)."""
    if lr is None or len(lr) < 2 or not (lr.value > 0).any():
        return np.ones(len(table.step))
    at = np.clip(np.searchsorted(lr.step, table.step, side="right") - 1, 0, None)
    here = lr.value[at]
    most: Floats = np.maximum(here, np.concatenate([here[:1], here[:-1]]))
    return np.maximum(most, 1e-3 * float(lr.value.max()))


def trend(values: Floats, blocks: int = 60) -> Trend | None:
    """Trend of a series over the medians of at most `blocks` stretches; None with fewer than eight finite values."""
    values = values[np.isfinite(values)]
    if len(values) < 8:
        return None
    y = np.array([np.median(part) for part in np.array_split(values, min(blocks, len(values)))])
    i, j = np.triu_indices(len(y), 1)
    difference = y[j] - y[i]
    slope = float(np.median(difference / (j - i)))
    score = float(np.sign(difference).sum())
    spread = np.sqrt(len(y) * (len(y) - 1) * (2 * len(y) + 5) / 18)
    return Trend(slope, (score - np.sign(score)) / float(spread), slope * (len(y) - 1))


def _forward_filled(values: Floats) -> Floats:
    """Each column with its gaps filled by the last value before them."""
    at = np.where(np.isnan(values), 0, np.arange(len(values))[:, None])
    np.maximum.accumulate(at, axis=0, out=at)
    return values[at, np.arange(values.shape[1])]


def _block(rows: int) -> int:
    return int(np.clip(rows // 16, 8, 100))
