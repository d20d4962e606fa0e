"""Tables with one value a row and the metric's name beside it: exports of MLflow, Aim and TensorBoard readers (tbparse, pandas melt).

`step, tag, value` becomes a row per step with a column per tag, as every other table is.
"""

from __future__ import annotations

import re
from typing import Final

import polars as pl

from gdiag.ingesters import claims, values
from gdiag.ingesters.alias_table import RUN
from gdiag.ingesters.aliases import simplify
from gdiag.ingesters.reading import Options

_KEYS: Final = (
    "key",
    "tag",
    "metric",
    "metric_name",
    "metric_key",
    "metrics",
    "variable",
    "scalar_name",
    "name",
    "series",
)
_VALUES: Final = ("value", "metric_value", "scalar_value", "val", "scalar")
_SPLITS: Final = ("split", "subset", "context", "dataset", "phase", "mode", "stage")
_EVAL: Final = r"(?i)(?:^|[^a-z])(?:val|valid|validation|eval|evaluation|test|dev)(?:$|[^a-z])"
_METRICS: Final = frozenset({"loss", "eval_loss", "grad_norm", "lr", "layers", "step_time"})
_MOST: Final = 4096
"""Names that a table of metrics may have."""
_ROW: Final = "\0row"
_NAME: Final = "\0name"


def holds(name: str) -> bool:
    """Whether a column of this name may be one of the two that make such a table."""
    return simplify(name) in (*_KEYS, *_VALUES)


def widened(frame: pl.DataFrame, line: str | None, options: Options) -> tuple[pl.DataFrame, list[str]]:
    """The table with its metrics side by side and a note; the frame as it is where it is no such table.

    Args:
        frame: columns in the file's own names.
        line: the column of line numbers.
        options: what the user says of columns.
    """
    key = next((n for n, k in frame.schema.items() if k == pl.String and simplify(n) in _KEYS), None)
    value = _value(frame)
    if key is None or value is None or claims.known(frame.columns, options) & (_METRICS - {"step_time"}):
        return frame, []
    lost = next((n for n in frame.columns if simplify(n) == "is_nan"), None)
    if lost is not None:  # MLflow's database writes 0 where this says that the value is no number
        said = pl.col(lost).cast(pl.String).str.to_lowercase().is_in(["1", "1.0", "true", "t"])
        number = pl.col(value).cast(pl.Float64, strict=False)
        frame = frame.with_columns(pl.when(said).then(float("nan")).otherwise(number).alias(value))
    names = frame[key].drop_nulls().unique(maintain_order=True)
    if names.len() > _MOST or not claims.known(names.to_list(), options) & _METRICS:
        return frame, []
    split = next((n for n, k in frame.schema.items() if k == pl.String and n != key and simplify(n) in _SPLITS), None)
    name = pl.col(key)
    if split is not None:
        name = pl.when(pl.col(split).str.contains(_EVAL)).then(pl.lit("eval/") + name).otherwise(name)
    places = [n for n in frame.columns if _is_place(n, options)]
    named = frame.with_columns(name.alias(_NAME))
    unnamed = pl.col(key).is_null() | (pl.col(key).str.strip_chars() == "")
    taken = ~unnamed & pl.col(_NAME).is_in(frame.columns)
    notes = _left_out(named, unnamed, taken)
    told = named.filter(~unnamed & ~taken)
    # A metric that has a step once more was logged by a run that was taken up: a row of its own.
    again = pl.int_range(pl.len()).over(*places, _NAME) if places else pl.int_range(pl.len()).over(_NAME)
    told = told.with_columns(again.alias(_ROW))
    rest = [n for n in told.columns if n not in (key, value, split, *places, _NAME, _ROW)]
    index = [*places, _ROW]
    first = told.group_by(index, maintain_order=True).agg(pl.col(rest).first())
    wide = told.select(*index, _NAME, value).pivot(on=_NAME, index=index, values=value, aggregate_function="first")
    wide = wide.with_columns(_numbers(wide[n]) for n, k in wide.schema.items() if k == pl.String and n not in index)
    joined = first.join(wide, on=index, how="left", nulls_equal=True, maintain_order="left").drop(_ROW)
    if line is not None and line in joined.columns:
        joined = joined.sort(line, maintain_order=True)
    count = wide.width - len(index)
    return joined, [f"a value a row, named by {values.escape(key, 40)}: {count} metrics side by side", *notes]


def _value(frame: pl.DataFrame) -> str | None:
    """The column of the values: one of numbers, else one of text that holds numbers, for other metrics are words."""
    named = [n for n in frame.columns if simplify(n) in _VALUES]
    told = (n for n in named if values.are_numbers(frame[n]))
    mixed = (n for n in named if frame.schema[n] == pl.String and values.numbers(frame[n]).series.count())
    return next(told, None) or next(mixed, None)


def _numbers(column: pl.Series) -> pl.Series:
    """A metric out of a column of text: as numbers where it holds nothing else."""
    numbers = column.cast(pl.Float64, strict=False)
    return numbers if numbers.null_count() == column.null_count() else column


def _left_out(named: pl.DataFrame, unnamed: pl.Expr, taken: pl.Expr) -> list[str]:
    """Notes about rows whose value has no name, or that of a column of the table itself."""
    notes = []
    if lost := int(named.select(unnamed.sum()).item()):
        notes.append(f"rows without a name for their value, left out: {lost:,}")
    if len(rows := named.filter(taken)):
        names = rows[_NAME].unique(maintain_order=True).to_list()
        shown = ", ".join(values.escape(name, 40) for name in names[:4]) + (", …" if len(names) > 4 else "")
        notes.append(f"values named like a column of the table itself ({shown}), left out: {len(rows):,}")
    return notes


def _is_place(name: str, options: Options) -> bool:
    return (
        simplify(name) in RUN
        or bool(claims.known([name], options) & {"step", "epoch"})
        or bool(re.match(r"(?i)run[._ ]?(?:hash|uuid)$", name))
    )
