"""Per-layer norms of every rank side by side: the first layer and rank that leave the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from gdiag.measures.layers import BLOCK_COLUMNS, FIRST_ROWS, Floats, against_history
from gdiag.schema import LayerColumn, Quantity

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

    None with fewer than two ranks that log layers, or when the rows before give no history.
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
    best: tuple[int, float, int, int, float] | None = None
    moved: dict[tuple[int, int], int] = {}
    for first in range(0, len(columns), BLOCK_COLUMNS):
        names = [c.column for c in columns[first : first + BLOCK_COLUMNS]]
        deviation, score = _deviation([f.select(names).to_numpy().astype(np.float64) for f in frames])
        with np.errstate(invalid="ignore"):
            hot = (np.abs(deviation) > np.log(ratio)) & (np.abs(score) > z)
        hot[:, :FIRST_ROWS] = False
        for r, row, j in np.argwhere(hot).tolist():
            moved[row, r] = moved.get((row, r), 0) + 1
            candidate = (row, -abs(float(score[r, row, j])), r, first + j, float(deviation[r, row, j]))
            best = candidate if best is None or candidate < best else best
    if best is None:
        return None
    row, score_, r, j, change = best
    column = columns[j]
    return RankLayer(
        steps[row],
        ranks[r],
        column.layer,
        column.quantity,
        float(np.exp(min(700.0, change))),
        -score_,
        moved[row, r],
        len(columns),
    )


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
