"""Series for plots: decimated by minimum and maximum, so that no spike is lost, and exact around incidents."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from gdiag.measures.curves import Floats
from gdiag.measures.run import RunView
from gdiag.model import Series
from gdiag.schema import STEP_METRICS

PLOTTED = ("loss", "eval_loss", "grad_norm", "param_norm", "lr", "step_time", "loss_scale")
"""Columns of `steps` that become series where they were logged."""

Window = tuple[int, int]
"""First and last step of an incident, inclusive."""


def envelope(
    x: Floats, y: Floats, windows: Sequence[Window] = (), *, points: int = 1000, around: int = 120, most: int = 6000
) -> tuple[Floats, Floats, Floats]:
    """Points of a curve for a plot: (x, low, high), three arrays of one length.

    x: increasing, (n,). y: (n,), NaN and ±inf allowed. windows: stretches of x, most important first, that stay exact
    with `around` rows before and after each end, as long as at most `most` rows are exact. The other rows are joined in
    about `points` pieces: the piece's first x, its finite minimum and its finite maximum; the first value of a piece
    that is not finite stays as a point of its own, so that it shows.
    """
    n = len(x)
    keep = _exact(x, windows, around=around, most=most)
    size = max(1, -(-n // points))
    index = np.arange(n)
    start = keep | np.concatenate(([True], keep[:-1])) | (index % size == 0)
    starts = np.flatnonzero(start)
    if not len(starts):
        return x, y, y
    finite = np.where(np.isfinite(y), y, np.nan)
    low, high = np.fmin.reduceat(finite, starts), np.fmax.reduceat(finite, starts)
    bad = np.flatnonzero(~np.isfinite(y))
    piece = np.searchsorted(starts, bad, side="right") - 1
    _, first = np.unique(piece, return_index=True)
    shown = bad[first]
    held = np.isfinite(low)
    every = np.concatenate((starts[held], shown))
    order = np.argsort(every, kind="stable")
    return (
        x[every][order],
        np.concatenate((low[held], y[shown]))[order],
        np.concatenate((high[held], y[shown]))[order],
    )


def _exact(x: Floats, windows: Sequence[Window], *, around: int, most: int) -> NDArray[np.bool_]:
    keep = np.zeros(len(x), dtype=bool)
    for first, last in windows:
        for edge in (first, last):
            at = int(np.searchsorted(x, edge))
            keep[max(0, at - around) : at + around] = True
        if keep.sum() >= most:
            break
    return keep


def plotted(
    run: RunView,
    windows: Sequence[Window],
    layers: Sequence[str] = (),
    gpus: Sequence[tuple[str | None, int]] = (),
) -> list[Series]:
    """The series of one run that plots are drawn from, over steps, or over Unix seconds for GPUs.

    layers: their gradient and parameter norms; for a block the first of its layers stands. gpus: (host, index), their clocks
    and temperatures.
    """
    found: list[Series] = []
    for name in PLOTTED:
        curve = run.series(name)
        step = np.concatenate((curve.finite.step, curve.nonfinite.step)).astype(np.float64)
        value = np.concatenate((curve.finite.value, curve.nonfinite.value))
        order = np.argsort(step, kind="stable")
        if len(order):
            found.append(_series(run, name, step[order], value[order], windows, None))
    for layer in dict.fromkeys(layers):
        for quantity in ("grad_norm", "param_norm"):
            found += _layer(run, layer, quantity, windows)
    for host, gpu in dict.fromkeys(gpus):
        found += _gpu(run, host, gpu)
    return found


def _layer(run: RunView, layer: str, quantity: str, windows: Sequence[Window]) -> list[Series]:
    inside = (c for c in run.layer_columns if f"{c.layer}.".startswith(f"{layer}.") and c.quantity == quantity)
    entry = next(inside, None)
    if entry is None or entry.column not in run.layers.columns:
        return []
    held = run.layers.filter(pl.col(entry.column).is_not_null() & pl.col("step").is_not_null())
    rows = held.group_by("step").agg(pl.col(entry.column).median()).sort("step")
    step, value = rows["step"].cast(pl.Float64).to_numpy(), rows[entry.column].to_numpy()
    return [_series(run, quantity, step, value, windows, entry.layer)] if len(step) else []


def _gpu(run: RunView, host: str | None, gpu: int) -> list[Series]:
    own = run.gpus.filter(pl.col("gpu").eq_missing(gpu) & (pl.lit(host is None) | pl.col("host").eq_missing(host)))
    found = []
    for name, unit in (("clock_sm", "MHz"), ("temperature", "°C")):
        if {"time", name} <= set(own.columns):
            rows = own.select("time", name).drop_nulls().sort("time")
            x, low, high = envelope(rows["time"].to_numpy(), rows[name].to_numpy())
            if len(x):
                points = tuple(x.tolist()), tuple(low.tolist()), tuple(high.tolist())
                found.append(Series(name, unit, run.run.id, *points, host=host, gpu=gpu))
    return found


def _series(
    run: RunView, name: str, step: Floats, value: Floats, windows: Sequence[Window], layer: str | None
) -> Series:
    x, low, high = envelope(step, value, windows)
    return Series(
        name, STEP_METRICS[name], run.run.id, tuple(x.tolist()), tuple(low.tolist()), tuple(high.tolist()), layer=layer
    )
