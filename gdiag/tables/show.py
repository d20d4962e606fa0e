"""Everything the logs hold around one step: metrics, layers, ranks, GPUs, events, and where each row stands."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl

from gdiag.errors import UsageError
from gdiag.measures.run import RunView
from gdiag.model import Column, Report, Table, Value
from gdiag.reference import gpus as reference
from gdiag.schema import STEP_METRICS, Records

HISTORY = 50
"""Logged rows before the step that its usual values are the median of."""
COUNTED = frozenset({"time", "elapsed", "epoch", "tokens", "samples", "sample_start", "sample_end"})
"""Columns that only count up: no value of theirs is usual."""
MOST = 16
"""Rows of a table of layers, events or places."""
GPU_UNITS = {"temperature": "°C", "power": "W", "clock_sm": "MHz", "utilization": "%", "reasons": ""}
"""Columns of a GPU's sample that are shown."""
NEAR_SECONDS = 60.0
"""GPU samples and events without a step belong to it within this time."""


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def around(report: Report, records: Records, step: int, rows: int = 3) -> Report:
    """The report cut down to what concerns `step`, with tables of what was logged `rows` rows before to after it.

    Raises:
        UsageError: no run has logged up to that step.
    """
    tables: list[Table] = []
    for run in records.runs:
        view = RunView(run, records)
        frame = view.paths[0].frame
        if frame.height and int(frame["step"][0]) <= step <= int(frame["step"][-1]):
            tables += _tables(view, frame, step, rows, several=len(records.runs) > 1)
    if not tables:
        held = [s for run in report.runs for s in run.segments]
        reach = f"{min(s.first_step for s in held)} to {max(s.last_step for s in held)}" if held else "no steps"
        raise UsageError(f"step {step} is not in the log, which holds {reach}")
    return replace(_concerning(report, step), tables=tuple(table for table in tables if table.rows))


def _concerning(report: Report, step: int) -> Report:
    """The report with only the incidents that cover `step` and their findings, numbered anew."""
    kept = [
        i for i in report.incidents
        if i.onset_step is not None and i.onset_step <= step <= (i.onset_step if i.last_step is None else i.last_step)
    ]  # fmt: skip
    numbers = sorted({index for incident in kept for index in incident.findings})
    place = {old: new for new, old in enumerate(numbers)}
    incidents = tuple(replace(i, findings=tuple(place[n] for n in i.findings), related=()) for i in kept)
    return replace(report, incidents=incidents, findings=tuple(report.findings[n] for n in numbers))


def _tables(view: RunView, frame: pl.DataFrame, step: int, rows: int, *, several: bool) -> list[Table]:
    at = int(np.searchsorted(frame["step"].to_numpy(), step, side="right")) - 1
    reached = int(frame["step"][at])
    name = f" of run {view.run.id}" if several else ""
    not_logged = f" (step {step} was not logged, the row before it was)" if reached != step else ""
    moment = frame["time"][at] if "time" in frame.columns else None
    return [
        _metrics(frame, at, rows, f"Step {reached}{name}{not_logged}"),
        _layers(view, reached, name),
        _ranks(view, reached, name),
        _gpus(view, moment, name),
        _events(view, reached, moment, name),
        _places(view, reached, name),
    ]


def _metrics(frame: pl.DataFrame, at: int, rows: int, title: str) -> Table:
    """One row per metric: its usual value, then the steps before, at and after."""
    part = frame.slice(max(0, at - rows), min(at, rows) + rows + 1)
    before = frame.slice(max(0, at - HISTORY), min(at, HISTORY))
    steps = [f"{'>' if s == frame['step'][at] else ''}{s}" for s in part["step"]]
    lines = [
        (
            _labelled(name),
            None if name in COUNTED else _median(before[name]),
            *_cells(name, part[name], frame[name][at]),
        )
        for name in STEP_METRICS
        if name in part.columns and part[name].count()
    ]
    return Table(title, (Column("metric"), Column("usual"), *(Column(s) for s in steps)), tuple(lines))


def _labelled(name: str) -> str:
    unit = "s from here" if name == "time" else STEP_METRICS[name]
    return f"{name} [{unit}]" if unit else name


def _cells(name: str, values: pl.Series, here: float | None) -> list[Value | None]:
    """The values as logged; clock times, which nobody can read as Unix seconds, relative to the step."""
    if name == "time":
        return [None if value is None or here is None else round(value - here, 3) for value in values]
    return values.to_list()


def _median(values: pl.Series) -> float | None:
    finite = values.drop_nulls().filter(values.drop_nulls().is_finite())
    return float(np.median(finite.to_numpy())) if len(finite) else None


def _layers(view: RunView, step: int, name: str) -> Table:
    """The layers that moved furthest from their own history at the last logged row up to `step`."""
    lines: list[tuple[float, tuple[Value | None, ...]]] = []
    layers = view.layers.filter(pl.col("step") <= step).sort("step", maintain_order=True)
    at = step
    for entry in view.layer_columns:
        if entry.column not in layers.columns:
            continue
        held = layers.select("step", entry.column).drop_nulls()
        if not held.height:
            continue
        at, value = held.row(-1)
        usual = _median(held[entry.column].slice(max(0, held.height - 1 - HISTORY), min(held.height - 1, HISTORY)))
        ratio = value / usual if usual else None
        moved = abs(np.log(ratio)) if ratio is not None and np.isfinite(ratio) and ratio > 0 else np.inf
        lines.append((-moved, (entry.layer, entry.quantity, value, usual, ratio, at)))
    lines.sort(key=lambda line: line[0])
    title = f"Layers{name} that moved furthest ({min(MOST, len(lines))} of {len(lines)})"
    columns = ("layer", "quantity", "value", "usual", "ratio", "step")
    return Table(title, tuple(Column(c) for c in columns), tuple(line for _, line in lines[:MOST]))


def _ranks(view: RunView, step: int, name: str) -> Table:
    rows = view.steps.filter((pl.col("step") == step) & pl.col("rank").is_not_null()).sort("rank")
    metrics = [c for c in STEP_METRICS if c in rows.columns and rows[c].count()]
    lines = tuple((row["rank"], *(row[m] for m in metrics)) for row in rows.iter_rows(named=True))
    return Table(f"Ranks{name}", (Column("rank"), *(Column(m, STEP_METRICS[m]) for m in metrics)), lines)


def _gpus(view: RunView, moment: float | None, name: str) -> Table:
    """Each GPU's sample nearest in time."""
    shown = [c for c in GPU_UNITS if view.has(f"gpus.{c}")]
    columns = (Column("host"), Column("gpu"), *(Column(c, GPU_UNITS[c]) for c in shown))
    if moment is None or not view.has("gpus.time"):
        return Table(f"GPUs{name}", columns, ())
    near = (
        view.gpus.with_columns(distance=(pl.col("time") - moment).abs())
        .filter(pl.col("distance") <= NEAR_SECONDS)
        .sort("distance")
        .unique(["host", "gpu"], keep="first", maintain_order=True)
        .sort("host", "gpu")
    )
    lines = tuple(
        (row["host"], row["gpu"], *(_named(row[c]) if c == "reasons" else row[c] for c in shown))
        for row in near.iter_rows(named=True)
    )
    return Table(f"GPUs{name} at that time", columns, lines)


def _named(mask: int | None) -> str | None:
    """Names of the event reasons in a bit mask."""
    if mask is None:
        return None
    return ", ".join(r.name for r in reference.reasons() if mask & r.bit) or "none"


def _events(view: RunView, step: int, moment: float | None, name: str) -> Table:
    events = view.events
    near = (pl.col("step") - step).abs() <= HISTORY
    if moment is not None:
        near |= (pl.col("time") - moment).abs() <= NEAR_SECONDS
    rows = events.filter(near) if events.height and {"step", "time"} <= set(events.columns) else events.head(0)
    wanted = [c for c in ("step", "kind", "rank", "host", "gpu", "text") if c in events.columns]
    lines = tuple(tuple(row[c] for c in wanted) for row in rows.head(MOST).iter_rows(named=True))
    return Table(f"Events{name} near it", tuple(Column(c) for c in wanted), lines)


def _places(view: RunView, step: int, name: str) -> Table:
    """Every row of that step as written, resumed runs and other writers included."""
    rows = view.steps.filter(pl.col("step") == step)
    held = [c for c in ("loss", "eval_loss", "grad_norm", "lr") if c in rows.columns and rows[c].count()]
    lines = []
    for row in rows.head(MOST).iter_rows(named=True):
        path = view.records.sources[row["source"]].path if row["source"] is not None else None
        lines.append((path, row["line"], row["rank"], *(row[c] for c in held)))
    columns = (Column("file"), Column("line"), Column("rank"), *(Column(c) for c in held))
    return Table(f"Rows{name} with that step ({rows.height})", columns, tuple(lines))
