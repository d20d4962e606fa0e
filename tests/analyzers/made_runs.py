"""Runs built from columns for the analyzers' tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from gdiag.measures.run import RunView
from gdiag.model import Run, Source
from gdiag.schema import TABLES, Records

Floats = NDArray[np.float64]
Values = Sequence[float | None] | NDArray[np.float64] | NDArray[np.int64]


def view(columns: Mapping[str, Values], *, events: pl.DataFrame | None = None, **config: float | str) -> RunView:
    """A run of one file whose `steps` hold `columns`; `step` counts from 0 when absent."""
    rows = len(next(iter(columns.values())))
    steps = pl.DataFrame({"step": np.arange(rows)} | {k: _plain(v) for k, v in columns.items()}, strict=False)
    rank = pl.col("rank") if "rank" in columns else pl.lit(None)
    steps = steps.with_columns(
        pl.lit("run").alias("run"), rank.cast(pl.Int32).alias("rank"), pl.lit(0).cast(pl.Int32).alias("source"),
        pl.int_range(1, rows + 1, dtype=pl.Int64).alias("line"),
    ).with_columns(pl.col(c).cast(TABLES["steps"][c]) for c in ["step", *(k for k in columns if k != "step")])  # fmt: skip
    run = Run("run", sources=(0,), config=dict(config))
    records = Records(runs=(run,), sources=(Source("run.jsonl", "jsonl", rows),), steps=steps)
    return RunView(run, records if events is None else replace(records, events=events))


def _plain(values: Values) -> Sequence[float | None]:
    return values.tolist() if isinstance(values, np.ndarray) else list(values)


def cosine(total: int = 1000, warmup: int = 50, peak: float = 3e-4, floor: float = 0.1) -> Floats:
    """Linear warm-up, then half a cosine to `floor` of the peak."""
    t = np.arange(total)
    u = np.clip((t - warmup) / max(1, total - warmup), 0, 1)
    return peak * np.where(t < warmup, (t + 1) / max(1, warmup), floor + (1 - floor) * 0.5 * (1 + np.cos(np.pi * u)))


def learning(total: int = 1000, noise: float = 0.05, seed: int = 0, start: float = 8.0, end: float = 3.0) -> Floats:
    """A healthy loss: falls as a power of the step, white noise."""
    t = np.arange(total)
    curve = end + (start - end) * (1 + t / 30.0) ** -0.7
    return np.asarray(curve + noise * np.random.default_rng(seed).standard_normal(total), dtype=np.float64)
