"""CSV exports of wandb charts: a column triple (mean, `__MIN`, `__MAX`) per run and metric over one x-axis."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from typing import Final

import polars as pl

from gdiag.errors import InputError
from gdiag.ingesters import columns, csv_rows, values
from gdiag.ingesters.aliases import simplify
from gdiag.ingesters.reading import Input, Options, Reading

FORMAT = "wandb-chart"
_SPLIT: Final = " - "
_BOUNDS: Final = ("__MIN", "__MAX")
_CLOCKS: Final = {"relative_time_process": "_runtime", "relative_time_wall": "_runtime", "wall_time": "_timestamp"}


@dataclass(frozen=True, slots=True)
class _Column:
    name: str
    run: str
    metric: str
    bound: bool


def recognise(given: Input) -> float:
    """`run - metric` columns with their `__MIN` and `__MAX`."""
    names = _header(given.head)
    if len(names) < 2:
        return 0.0
    named = [name for name in names[1:] if _SPLIT in name]
    bounds = sum(name.endswith(_BOUNDS) for name in named)
    return 0.95 if named and len(named) == len(names) - 1 and bounds else 0.0


def read(given: Input, options: Options) -> Reading:
    """A row per run and point.

    Raises:
        InputError: the chart holds no values.
    """
    names = _header(given.head)
    found = csv_rows.read(given.data(), csv_rows.Shape(",", tuple(names), 1))
    if not found.frames:
        raise InputError(f"{given.path} is a chart export without values")
    frame = found.frames[0]
    split = [_split(name) for name in frame.columns[1:] if name != columns.LINE]
    x = frame.columns[0]
    parts = [_one_run(frame, x, run, [c for c in split if c.run == run]) for run in dict.fromkeys(c.run for c in split)]
    whole = pl.concat(parts, how="diagonal") if parts else frame.clear()
    if not whole.height:
        raise InputError(f"{given.path} is a chart export without values")
    points = max(part.height for part in parts)
    notes = [f"chart export: at most {points} points a run, sampled where the run logged more"]
    if _averaged(frame, split):
        notes.append(
            "points are means over several logged steps (minimum and maximum differ): short peaks are flattened"
        )
    bad = pl.DataFrame(found.rejects, schema={"line": pl.Int64, "reason": pl.String, "text": pl.String}, orient="row")
    return columns.reading(given.path, FORMAT, whole, options, rejects=bad, notes=notes, rows=found.rows)


def _header(head: bytes) -> list[str]:
    first = head.lstrip(b"\r\n").split(b"\n", 1)[0].decode("utf-8", errors="replace").strip()
    try:
        return next(csv.reader(io.StringIO(first)), [])
    except csv.Error:
        return []


def _split(name: str) -> _Column:
    base = name
    for end in _BOUNDS:
        base = base.removesuffix(end)
    run, _, metric = base.rpartition(_SPLIT)
    return _Column(name, run, metric, base != name)


def _one_run(frame: pl.DataFrame, x: str, run: str, found: list[_Column]) -> pl.DataFrame:
    """The points of one run, under the metrics' own names and its own step where the x-axis is a clock."""
    axis = _CLOCKS.get(simplify(x), "step")
    kept = {c.metric: c.name for c in found if not c.bound}
    chosen = frame.select(
        pl.lit(run).alias("run"),
        pl.col(x).alias(axis),
        pl.col(columns.LINE),
        *(pl.col(name).alias(m) for m, name in kept.items() if m != axis),
    )
    return chosen.filter(pl.any_horizontal(pl.col([m for m in kept if m != axis]).is_not_null()))


def _averaged(frame: pl.DataFrame, found: list[_Column]) -> bool:
    """Whether any minimum differs from its maximum."""
    names = {c.name for c in found}
    for name in names:
        if name.endswith("__MIN") and (high := f"{name[:-5]}__MAX") in names:
            low_values, high_values = values.numbers(frame[name]).series, values.numbers(frame[high]).series
            if (low_values != high_values).any():
                return True
    return False
