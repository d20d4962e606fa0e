"""Per-layer norms of every rank side by side: the first layer and rank that leave the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from gdiag.measures.layers import BLOCK_COLUMNS, FIRST_ROWS, Floats, against_history
from gdiag.measures.segments import Ints
from gdiag.schema import LayerColumn, Quantity

HABIT = 1.3
"""How far a layer of one rank must stand above whatever the layers of the other ranks reach by chance."""
QUANTITIES: tuple[Quantity, ...] = ("grad_norm", "param_norm", "activation_norm")


@dataclass(frozen=True, slots=True)
class RankLayer:
    """One layer of one rank that leaves the other ranks' values."""

    step: int
    rank: int
    layer: str
    quantity: Quantity
    ratio: float
    """Value / median over the ranks."""
    z: float
    layers: int
    """Layers of that rank that leave in the same row."""
    total: int


def first_rank_layer(
    layers: pl.DataFrame, catalogue: Sequence[LayerColumn], ratio: float, z: float
) -> RankLayer | None:
    """The first row in which a layer of one rank is `ratio` times the median of the ranks and `z` usual deviations away.

    Few samples a rank have heavy tails: what the layers of the other ranks reach over the run is chance. None with fewer
    than two ranks that log layers, or when the rows before give no history.
    """
    found = [
        f for q in QUANTITIES if (f := _of(layers, [c for c in catalogue if c.quantity == q], ratio, z)) is not None
    ]
    return min(found, key=lambda f: (f.step, -f.z), default=None)


def _of(layers: pl.DataFrame, columns: list[LayerColumn], ratio: float, z: float) -> RankLayer | None:
    held = set(layers.columns)
    columns = [c for c in columns if c.column in held]
    if not columns or not layers.height or layers["rank"].n_unique() < 2:
        return None
    ranked = layers.filter(pl.col("rank").is_not_null() & pl.col("step").is_not_null())
    parts = {int(key[0]): part.unique("step", keep="last").sort("step") for key, part in ranked.group_by("rank")}
    if len(parts) < 2:
        return None
    steps = sorted(set.intersection(*(set(p["step"].to_list()) for p in parts.values())))
    if len(steps) < 2 * FIRST_ROWS:
        return None
    ranks = sorted(parts)
    frames = [parts[r].filter(pl.col("step").is_in(steps)) for r in ranks]
    top, usual = np.zeros((2, len(ranks), len(steps)))
    column_of = np.zeros(top.shape, np.int64)
    change = np.zeros(top.shape)
    moved = np.zeros(top.shape, np.int64)
    for first in range(0, len(columns), BLOCK_COLUMNS):
        names = [c.column for c in columns[first : first + BLOCK_COLUMNS]]
        deviation, score = _deviation([f.select(names).to_numpy().astype(np.float64) for f in frames])
        size, high = np.abs(deviation), np.nan_to_num(np.abs(score))
        usual = np.maximum(usual, np.where(size > 0.5 * np.log(ratio), high, 0.0).max(axis=2))
        far = np.where(size > np.log(ratio), high, 0.0)
        moved += np.count_nonzero(far > z, axis=2)
        at = far.argmax(axis=2)
        largest = np.take_along_axis(far, at[:, :, None], axis=2)[:, :, 0]
        higher = largest > top
        top[higher], column_of[higher] = largest[higher], (first + at)[higher]
        change[higher] = np.take_along_axis(deviation, at[:, :, None], axis=2)[:, :, 0][higher]
    top[:, :FIRST_ROWS] = 0.0
    hot = top > np.maximum(z, HABIT * _by_chance(usual, moved, len(columns)))[:, None]
    if not hot.any():
        return None
    row = int(hot.any(axis=0).argmax())
    r = int(np.where(hot[:, row], top[:, row], 0.0).argmax())
    column = columns[column_of[r, row]]
    times = float(np.exp(min(700.0, change[r, row])))
    return RankLayer(
        steps[row], ranks[r], column.layer, column.quantity, times, float(top[r, row]), int(moved[r, row]), len(columns)
    )


def _by_chance(top: Floats, moved: Ints, layers: int) -> Floats:
    """What no fault gives, per rank: the largest score that any other rank reaches in the run, shape (ranks,).

    Rows in which a quarter of a rank's layers leave are left out: that is a batch.
    """
    most = np.where(moved <= max(1, layers // 4), top, 0.0)[:, FIRST_ROWS:].max(axis=1)
    return np.array([np.delete(most, r).max() for r in range(len(most))])


def _deviation(values: list[Floats]) -> tuple[Floats, Floats]:
    """(log value − median over ranks, the same in usual deviations), each (ranks, rows, layers)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(np.stack(values))
    logs[~np.isfinite(logs)] = np.nan
    ordered = np.sort(logs, axis=0)
    deviation = logs - ordered[(len(values) - 1) // 2]
    ranks, rows, layers = deviation.shape
    flat = deviation.transpose(1, 0, 2).reshape(rows, ranks * layers)
    _, scale = against_history(flat, int(np.clip(rows // 16, 8, 100)), 0.02)
    score: Floats = (flat / scale).reshape(rows, ranks, layers).transpose(1, 0, 2)
    return deviation, score
