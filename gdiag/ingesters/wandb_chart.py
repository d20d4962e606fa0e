"""CSV exports of wandb charts: a column triple (mean, `__MIN`, `__MAX`) per run and metric over one x-axis."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from typing import Final

import polars as pl

from gdiag.errors import InputError
from gdiag.ingesters import columns, csv_rows, grouping_marks, values
from gdiag.ingesters.aliases import simplify
from gdiag.ingesters.reading import Input, Options, Reading

FORMAT = "wandb-chart"
_SPLIT: Final = " - "
_SEPARATORS: Final = (",", ";", "\t", "|")
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
    return 0.0 if _layout(given.head) is None else 0.95


def read(given: Input, options: Options) -> Reading:
    """A row per run and point.

    Raises:
        InputError: the chart holds no values.
    """
    layout = _layout(given.head)
    assert layout is not None
    separator, names, x = layout
    body = csv.reader(given.head.decode("utf-8", errors="replace").splitlines()[1:-1], delimiter=separator)
    comma = grouping_marks.commas_are_decimal([*body], likely=separator == ";")
    found = csv_rows.read(given.data(), csv_rows.Shape(separator, names, 1, comma))
    if not found.frames:
        raise InputError(f"{given.path} is a chart export without values")
    frame = found.frames[0]
    # A column that stands there twice is one.
    first = [at for at, name in enumerate(names) if _SPLIT in name and names.index(name) == at]
    split = [_split(frame.columns[at]) for at in first]
    runs = dict.fromkeys(c.run for c in split)
    parts = [_one_run(frame, frame.columns[x], run, [c for c in split if c.run == run]) for run in runs]
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


def _layout(head: bytes) -> tuple[str, tuple[str, ...], int] | None:
    """Separator, names and the place of the x-axis, the only column of no run; None where it is no such table."""
    line = head.lstrip(b"\r\n").splitlines()[0].decode("utf-8", errors="replace").strip() if head.strip() else ""
    for separator in _SEPARATORS:
        try:
            names = tuple(name.strip() for name in next(csv.reader([line], delimiter=separator), []))
        except csv.Error:
            continue
        named = [name for name in names if _SPLIT in name]
        others = {name for name in names if name and _SPLIT not in name}
        if len(others) == 1 and any(name.endswith(_BOUNDS) for name in named):
            return separator, names, names.index(others.pop())
    return None


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
    told = (values.told(chosen[m]) for m in kept if m != axis)
    return chosen.filter(pl.select(pl.any_horizontal(pl.repeat(False, chosen.height), *told)).to_series())


def _averaged(frame: pl.DataFrame, found: list[_Column]) -> bool:
    """Whether any minimum differs from its maximum."""
    names = {c.name for c in found}
    for name in names:
        if name.endswith("__MIN") and (high := f"{name[:-5]}__MAX") in names:
            low_values, high_values = values.numbers(frame[name]).series, values.numbers(frame[high]).series
            if (low_values != high_values).any():
                return True
    return False
