"""Runs with step times and GPU telemetry for the analyzers' tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from gdiag.measures.run import RunView
from gdiag.model import Source
from gdiag.schema import TABLES
from tests.analyzers import made_runs

Floats = NDArray[np.float64]
START = 1_780_000_000.0
STEP = 2.0


def noisy(total: int = 2000, seconds: float = STEP, noise: float = 0.01, seed: int = 0) -> Floats:
    """Step times with log-normal noise."""
    return np.asarray(seconds * np.exp(noise * np.random.default_rng(seed).standard_normal(total)))


def timed(step_time: Floats, **columns: Floats) -> dict[str, made_runs.Values]:
    """Columns of a run whose steps take `step_time` seconds from START on."""
    return {"step_time": step_time, "time": START + np.cumsum(step_time), **columns}


def card(
    gpu: int, seconds: float = 4000.0, every: float = 5.0, *, host: str | None = "node-1", start: float = START, more: Mapping[str, float | Floats] | None = None, **columns: float | Floats
) -> pl.DataFrame:  # fmt: skip
    """Samples of one healthy, fully loaded H100; `columns` are constants or one value per sample."""
    time = np.arange(start, start + seconds, every) + 0.001 * gpu
    values: dict[str, float | Floats] = {
        "temperature": 62.0, "power": 640.0, "power_limit": 700.0, "clock_sm": 1980.0, "clock_sm_max": 1980.0,
        "utilization": 98.0, "reasons": 0.0, "ecc_uncorrected": 0.0,
    }  # fmt: skip
    values.update(columns)
    values.update(more or {})
    frame = pl.DataFrame(
        {"time": time} | {k: np.broadcast_to(np.asarray(v, dtype=float), time.shape) for k, v in values.items()}
    )
    return frame.with_columns(
        pl.col("reasons").cast(pl.Int64), pl.lit(host, pl.String).alias("host"), pl.lit(gpu, pl.Int32).alias("gpu"),
        pl.lit(f"GPU-{host}-{gpu}").alias("uuid"), pl.lit("NVIDIA H100 80GB HBM3").alias("model"), pl.lit(True).alias("zone_known"),
    )  # fmt: skip


def watched(
    columns: Mapping[str, made_runs.Values], cards: Sequence[pl.DataFrame], reasons: str = "clocks_event_reasons.active"
) -> RunView:
    """A run with step columns and telemetry beside it."""
    run = made_runs.view(columns)
    rows = pl.concat(cards, how="diagonal").sort("time")
    gpus = rows.with_columns(
        pl.lit("run").alias("run"), pl.lit(1, pl.Int32).alias("source"), pl.int_range(2, rows.height + 2, dtype=pl.Int64).alias("line")
    )  # fmt: skip
    gpus = gpus.select(pl.col(c).cast(t) for c, t in TABLES["gpus"].items() if c in gpus.columns)
    smi = Source(
        "smi.csv", "nvidia-smi-csv", rows.height, columns={"reasons": reasons} if "reasons" in gpus.columns else {}
    )
    records = run.records
    return RunView(replace(run.run, sources=(0, 1)), replace(records, sources=(*records.sources, smi), gpus=gpus))
