"""How step time follows the slowest GPU's clock: partial rank correlation of block medians with a block bootstrap."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl

from gdiag.measures.curves import Floats
from gdiag.measures.step_time import StepTimes
from gdiag.measures.telemetry import Telemetry, step_stamps

DRAWS: Final = 400
BLOCK: Final = 10
"""Moments that are drawn together, so that the bootstrap keeps their autocorrelation."""


@dataclass(frozen=True, slots=True)
class Coupling:
    """Correlation of step time with a GPU quantity on a common time axis, the trend in time taken out."""

    correlation: float
    low: float
    high: float
    """95 % interval of the block bootstrap."""
    moments: int
    clock_range: float
    """Highest over lowest clock, less 1."""


def coupling(view: Telemetry, times: StepTimes) -> Coupling | None:
    """Step time against the slowest GPU's clock under load; None where fewer than 40 moments or hardly any change.

    Single samples cannot explain single steps at a few hertz, so medians over moments are compared, at most 400.
    """
    if view.alignment is None or not view.alignment.usable or not np.isfinite(times.time).any():
        return None
    part = view.health.partial
    clocks = (
        part.bins.filter(pl.col("clock_rows") > 0)
        .with_columns((pl.col("clock_sum") / pl.col("clock_rows")).alias("clock"))
        .group_by("bin").agg(pl.col("clock").min(), pl.col("first_time").min().alias("time")).sort("bin")
    )  # fmt: skip
    stamps = step_stamps(times)
    moment = clocks["time"].to_numpy() + view.alignment.offset
    size = max(1, len(moment) // 400)
    edges = moment[::size]
    if len(edges) < 40:
        return None
    at = np.searchsorted(edges, stamps, side="right") - 1
    usable = times.judged & (at >= 0) & ~times.bad_values
    frame = pl.DataFrame({"at": at[usable], "s": times.seconds[usable]}).group_by("at").agg(pl.col("s").median())
    slowest = (
        pl.DataFrame({"at": np.arange(len(moment)) // size, "c": clocks["clock"]})
        .group_by("at")
        .agg(pl.col("c").mean())
    )
    both = frame.join(slowest, on="at").sort("at")
    if both.height < 40:
        return None
    seconds, clock = both["s"].to_numpy(), both["c"].to_numpy()
    spread = float(clock.max() / clock.min() - 1)
    if spread < 0.01:
        return None
    low, high = _interval(seconds, clock)
    return Coupling(partial_rank(seconds, clock), low, high, both.height, spread)


def partial_rank(a: Floats, b: Floats) -> float:
    """Spearman correlation of two series with their common linear trend in time taken out."""
    t = np.arange(len(a), dtype=float)
    ra, rb = _residual(_ranks(a), t), _residual(_ranks(b), t)
    size = float(np.sqrt((ra @ ra) * (rb @ rb)))
    return float(ra @ rb / size) if size > 1e-12 else 0.0


def _ranks(x: Floats) -> Floats:
    """Ranks from 0, ties at their mean."""
    _, inverse, counts = np.unique(x, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    return np.asarray((ends - (counts + 1) / 2)[inverse])


def _residual(x: Floats, t: Floats) -> Floats:
    u, v = t - t.mean(), x - x.mean()
    return np.asarray(v - u * (u @ v) / max(float(u @ u), 1e-12))


def _interval(seconds: Floats, clock: Floats) -> tuple[float, float]:
    """95 % interval of `partial_rank`: pairs of detrended ranks are drawn in blocks."""
    rng = np.random.default_rng(0)
    n = len(seconds)
    t = np.arange(n, dtype=float)
    ra, rb = _residual(_ranks(seconds), t), _residual(_ranks(clock), t)
    drawn = []
    for _ in range(DRAWS):
        starts = rng.integers(0, n - BLOCK + 1, size=-(-n // BLOCK))
        take = (starts[:, None] + np.arange(BLOCK)[None, :]).ravel()[:n]
        a, b = ra[take], rb[take]
        size = float(np.sqrt((a @ a) * (b @ b)))
        drawn.append(float(a @ b / size) if size > 1e-12 else 0.0)
    return float(np.quantile(drawn, 0.025)), float(np.quantile(drawn, 0.975))
