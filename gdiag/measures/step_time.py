"""Step time as judged: one value per logged step, first steps after a start set apart, parts of the step beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from gdiag.measures.curves import Floats
from gdiag.measures.segments import Ints

Bools = NDArray[np.bool_]
Basis = Literal["logged", "cumulative column", "time stamps", "elapsed time", "throughput"]
Share = Literal["data", "communication", "compute", "mixed", "unknown"]

PARTS: Final[dict[str, Share]] = {"data_time": "data", "comm_time": "communication", "compute_time": "compute"}
RATES: Final = ("tokens_per_s", "samples_per_s")
WARM_UP_ROWS: Final = 20
"""Rows after the first one of a run that may hold compilation, autotuning and filling of the loader."""


@dataclass(frozen=True)
class StepTimes:
    """Arrays of one length, one element per step with a finite, positive time, in order of step."""

    step: Ints
    seconds: Floats
    time: Floats
    """Unix seconds when the step was logged; NaN where not known."""
    source: Ints
    line: Ints
    judged: Bools
    """False for warm-up rows and the first rows after a restart."""
    bad_values: Bools
    """Loss or gradient norm not finite in the row, or its update skipped."""
    parts: dict[str, Floats]
    """data_time, comm_time, compute_time where logged [s]; NaN where absent."""
    load: Floats | None
    """Work of each step, of any unit, where a counter, batch size and length, or a throughput beside the time say so."""
    basis: Basis
    rate: str = ""
    """The column that stands for the time where basis is throughput: `seconds` are then those of one token or sample."""

    def __len__(self) -> int:
        return len(self.step)

    def row(self, i: int) -> dict[str, object]:
        """Place of element `i` as RunView.where takes it."""
        source, line = int(self.source[i]), int(self.line[i])
        return {
            "step": int(self.step[i]), "source": source if source >= 0 else None, "line": line if line >= 0 else None,
            "time": float(self.time[i]) if np.isfinite(self.time[i]) else None,
        }  # fmt: skip


def step_times(frame: pl.DataFrame, restarts: Sequence[int] = ()) -> StepTimes | None:
    """Step times of a trajectory (one row per step, increasing); None when nothing says how long steps took.

    A column that only grows is a running total and is differenced. Without one, differences of time stamps, then of
    elapsed time stand for it, then the inverse of the throughput, which is the time of one token or sample.
    """
    rows = frame.sort("step")
    seconds, basis, rate = _seconds(rows)
    if seconds is None:
        return None
    good = np.isfinite(seconds) & (seconds > 0)
    if good.sum() < 2:
        return None
    step = rows["step"].to_numpy()[good]
    place = [rows[c].cast(pl.Int64).fill_null(-1).to_numpy()[good] for c in ("source", "line")]
    judged = np.ones(len(step), dtype=bool)
    warm = min(WARM_UP_ROWS, max(1, len(step) // 20))
    judged[:warm] = False
    for restart in restarts:
        at = int(np.searchsorted(step, restart))
        judged[at : at + max(2, warm // 4)] = False
    return StepTimes(
        step=step, seconds=seconds[good], time=_column(rows, "time")[good], source=place[0], line=place[1], judged=judged,
        bad_values=_bad(rows)[good], load=_load(rows, seconds, good, basis), basis=basis, rate=rate,
        parts={name: _column(rows, name)[good] for name in PARTS if name in rows.columns and rows[name].count()},
    )  # fmt: skip


def _seconds(rows: pl.DataFrame) -> tuple[Floats | None, Basis, str]:
    logged = _column(rows, "step_time")
    finite = logged[np.isfinite(logged)]
    if len(finite) >= 2:
        if _running_total(finite):
            return _per_step(logged, rows), "cumulative column", ""
        return logged, "logged", ""
    named: tuple[tuple[str, Basis], ...] = (("time", "time stamps"), ("elapsed", "elapsed time"))
    for name, basis in named:
        column = _column(rows, name)
        if np.isfinite(column).sum() >= 30:
            gaps = _per_step(column, rows)
            # NOTE: stamps of whole seconds say nothing about steps that take less than some tens of them.
            resolution = _resolution(column)
            if np.isfinite(gaps).any() and np.nanmedian(gaps) > 5 * resolution:
                return gaps, basis, ""
    for name in RATES:
        rate = _column(rows, name)
        if (np.isfinite(rate) & (rate > 0)).sum() >= 30:
            with np.errstate(divide="ignore", invalid="ignore"):
                return 1.0 / rate, "throughput", name
    return None, "logged", ""


def _running_total(values: Floats) -> bool:
    """Whether values only grow, and by far more than a step time would."""
    if len(values) < 10:
        return False
    grows = np.diff(values) >= 0
    return bool(
        grows.mean() > 0.98 and values[-1] > 4 * max(values[0], 1e-12) and values[-1] > 2 * np.median(values) * 0.9
    )


def _per_step(total: Floats, rows: pl.DataFrame) -> Floats:
    step = rows["step"].to_numpy().astype(float)
    out = np.full(len(total), np.nan)
    known = np.flatnonzero(np.isfinite(total))
    if len(known) > 1:
        with np.errstate(divide="ignore", invalid="ignore"):
            gaps = np.diff(total[known]) / np.diff(step[known])
        out[known[1:]] = np.where(gaps > 0, gaps, np.nan)
    return out


def _resolution(column: Floats) -> float:
    finite = column[np.isfinite(column)]
    for unit in (60.0, 1.0, 0.1, 0.01):
        if np.abs(finite / unit - np.round(finite / unit)).max() < 1e-3:
            return unit
    return 1e-3


def _bad(rows: pl.DataFrame) -> Bools:
    bad = np.zeros(rows.height, dtype=bool)
    for name in ("loss", "grad_norm"):
        if name in rows.columns:
            bad |= rows.select((pl.col(name).is_not_null() & ~pl.col(name).is_finite()).fill_null(False))[
                name
            ].to_numpy()
    if "skipped" in rows.columns:
        bad |= (rows["skipped"].fill_null(0) > 0).to_numpy()
    return bad


def _load(rows: pl.DataFrame, seconds: Floats, good: Bools, basis: Basis) -> Floats | None:
    """What each step has to do: its tokens or samples, else batch size × sequence length, else throughput × time.

    None where nothing says it, and for times of single tokens or samples, which do not grow with it.
    """
    if basis == "throughput":
        return None
    load: Floats | None = None
    totals = [_column(rows, name) for name in ("tokens", "samples")]
    sizes = [_column(rows, name) for name in ("batch_size", "seq_len")]
    rates = [_column(rows, name) for name in RATES]
    total = next((column for column in totals if np.isfinite(column).sum() > 10), None)
    rate = next((column for column in rates if np.isfinite(column).sum() > 10), None)
    if total is not None:
        load = _per_step(total, rows)
    elif np.isfinite(sizes[0]).any():
        load = np.prod([np.where(np.isfinite(c), c, np.nanmedian(c)) for c in sizes if np.isfinite(c).any()], axis=0)
    elif rate is not None:
        load = rate * seconds
    elif np.isfinite(sizes[1]).any():
        load = sizes[1]
    if load is None:
        return None
    load = np.where(load > 0, load, np.nan)[good]
    return load if np.isfinite(load).sum() >= 10 else None


def _column(rows: pl.DataFrame, name: str) -> Floats:
    if name not in rows.columns:
        return np.full(rows.height, np.nan)
    return rows[name].cast(pl.Float64).fill_null(float("nan")).to_numpy()


def excess_share(times: StepTimes, inside: Bools, before: Bools) -> tuple[Share, dict[str, float]]:
    """Which logged part of the step holds the time added inside: its name, and each part's share of the excess.

    Medians inside against medians before; a part is named when it holds at least 60 % of the excess. With no part
    logged the answer is unknown; when the logged parts hold less than 60 % together, too.
    """
    if not times.parts or not inside.any() or not before.any():
        return "unknown", {}
    added = float(np.mean(times.seconds[inside]) - np.median(times.seconds[before]))
    if added <= 0:
        return "unknown", {}
    shares: dict[str, float] = {}
    for name, values in times.parts.items():
        here, there = values[inside], values[before]
        if np.isfinite(here).any() and np.isfinite(there).any():
            shares[name] = float((np.nanmean(here) - np.nanmedian(there)) / added)
    if not shares:
        return "unknown", {}
    top = max(shares, key=lambda name: shares[name])
    if shares[top] >= 0.6:
        return PARTS[top], shares
    return ("mixed" if sum(shares.values()) >= 0.6 else "unknown"), shares
