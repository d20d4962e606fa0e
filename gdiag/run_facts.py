"""The figures of a run that causes, costs and actions quote, taken from its measures."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import polars as pl

from gdiag.measures.run import RunView
from gdiag.measures.segments import gaps
from gdiag.model import DataWindow, Finding
from gdiag.schema import STEP_METRICS, TABLES
from gdiag.triage.facts import RunFacts


def _windows(view: RunView, findings: Sequence[Finding]) -> dict[int, DataWindow]:
    """The samples consumed at the steps at which findings of the run begin."""
    onsets = {f.where.step for f in findings if f.where.run == view.run.id and f.where.step is not None}
    found = ((step, view.batch_window(step)) for step in sorted(onsets))
    return {step: DataWindow(seen.first, seen.last) for step, seen in found if seen is not None}


def _times(view: RunView, findings: Sequence[Finding]) -> dict[int, float]:
    """When the run was at the steps at which its findings end: at the last logged one where it is not logged itself."""
    ends = {f.where.last_step or f.where.step for f in findings if f.where.run == view.run.id} - {None}
    clock = view.series("time")
    found = ((step, clock.at(step)) for step in ends if step is not None)
    return {step: time for step, time in found if time is not None}


def facts_of(view: RunView, findings: Sequence[Finding]) -> RunFacts:
    """The run's figures that causes, costs and actions quote."""
    steps = view.series("step_time")
    seconds = float(pl.Series(steps.value).median() or 0.0) if len(steps.value) else None  # type: ignore[arg-type]
    logged = sorted({int(step) for step in view.series("loss").step})
    begun = min([*logged[:1], *view.series("loss").nonfinite.step[:1].tolist()], default=None)
    apart = [b - a for a, b in pairwise(logged)]
    rates = pl.Series(view.series("lr").value, dtype=pl.Float64)
    ranks = view.steps["rank"].n_unique() if "rank" in view.steps.columns and view.steps["rank"].count() else None
    cards = view.gpus.select("host", "gpu").n_unique() if {"host", "gpu"} <= set(view.gpus.columns) else 0
    saved = view.events.filter(pl.col("kind") == "checkpoint")["step"].drop_nulls().unique().sort().to_list()
    columns = {f"steps.{name}" for name in STEP_METRICS if view.has(f"steps.{name}")}
    columns |= {f"layers.{c.quantity}" for c in view.layer_columns}
    columns |= {
        name for name in ("ports.value", "operations.seconds", "nvlinks.line", "modules.value") if view.has(name)
    }
    columns |= {f"gpus.{name}" for name in TABLES["gpus"] if view.has(f"gpus.{name}")}
    return RunFacts(
        run=view.run.id,
        first_step=begun,
        last_step=logged[-1] if logged else None,
        interval=float(pl.Series(apart).median() or 1.0) if apart else 1.0,  # type: ignore[arg-type]
        rows=np.unique(np.concatenate([np.array(logged, dtype=np.int64), view.series("loss").nonfinite.step])),
        gaps=tuple(gaps(np.array(logged))),
        step_seconds=seconds,
        ranks=ranks or cards or None,
        checkpoints=tuple(saved),
        columns=frozenset(columns | ({"steps.rank"} if ranks else set())),
        config={**(view.schedule.settings() if view.schedule is not None else {}), **view.run.config},
        peak_lr=float(rates.max()) if rates.count() else None,  # type: ignore[arg-type]
        steady_lr=rates.n_unique() == 1,
        windows=_windows(view, findings),
        times=_times(view, findings),
        formats=frozenset(view.records.sources[i].format for i in view.run.sources),
    )
