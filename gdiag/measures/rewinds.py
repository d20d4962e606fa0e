"""Rewinds of one logged step: a restart that trains the last logged step again leaves two rows of one step, no step back."""

from __future__ import annotations

from typing import Final

import numpy as np
import polars as pl

from gdiag.measures.step_time import Bools

TRAINING: Final = ("grad_norm", "grad_norm_clipped", "lr", "step_time", "tokens_per_s", "loss_scale", "skipped")
"""Columns that a row of an evaluation, which may hold a loss as well, does not have."""
RARE, RARE_TIMED = 20, 4
"""Rows per doubled step from which doubling is no habit of the logger (ranks, micro-batches, two processes), without and
with time stamps: a run may crash again and again."""


def trained_again(rows: pl.DataFrame) -> Bools:
    """Which rows of one rank, in order of writing, hold the step of the row before because it was trained a second time.

    The two rows hold the same columns, training columns among them. With time stamps, they lie at least a usual distance
    of rows apart (a row written twice does not); without, loss and gradient norm both differ.
    """
    again = np.zeros(rows.height, dtype=bool)
    if "loss" not in rows.columns or not bool((rows["step"].diff() == 0).any()):
        return again
    held = rows.with_row_index("row").filter(pl.col("loss").is_not_null())
    values = [name for name in held.columns if name not in {"row", "rank", "source", "line"}]
    known = pl.struct(pl.col(values).is_not_null())
    trained = pl.any_horizontal(False, *(pl.col(name).is_not_null() for name in TRAINING if name in held.columns))
    doubled = held.select(
        (trained & (pl.col("step").diff() == 0) & (known == known.shift())).fill_null(value=False) & _later(held)
    ).to_series()
    if doubled.sum() * (RARE_TIMED if _timed(held) else RARE) > held.height:
        return again
    again[held["row"].filter(doubled).to_numpy()] = True
    return again


def _timed(rows: pl.DataFrame) -> bool:
    return "time" in rows.columns and rows["time"].null_count() == 0


def _later(rows: pl.DataFrame) -> pl.Expr:
    """Whether a row cannot be the one before, written twice."""
    if _timed(rows):
        usual = rows.select(pl.col("time").diff().filter(pl.col("step").diff() > 0).median()).item()
        return pl.col("time").diff() >= (usual or 0.0)
    both = [pl.col(name).diff() != 0 for name in ("loss", "grad_norm") if name in rows.columns]
    return pl.all_horizontal(both).fill_null(value=False) if len(both) == 2 else pl.lit(value=False)
