"""JSON objects of any shape → flat rows → a frame."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import polars as pl

from gdiag.ingesters import lists
from gdiag.ingesters.lists import Cell as Cell

LINE: Final = "line"
LOGGED: Final = "line (logged)"
"""What a column of the log called `line` is renamed to."""
DEPTH: Final = 32
"""Objects nested deeper than this are no metrics."""
_NESTED: Final = (pl.Struct, pl.List, pl.Array)


def flatten(record: Mapping[str, object], prefix: str = "", depth: int = 0) -> dict[str, Cell]:
    """Nested objects as `a/b`; lists as `lists.spread` gives them; a histogram as its norm where its bins say it.

    Raises:
        RecursionError: nested deeper than DEPTH.
    """
    if depth > DEPTH:
        raise RecursionError("nested too deep")
    flat: dict[str, Cell] = {}
    for key, value in record.items():
        name = _text(f"{prefix}{key}")
        if isinstance(value, dict):
            norm = histogram_norm(value)
            if norm is not None:
                flat[name] = norm
            else:
                flat.update(flatten(value, f"{name}/", depth + 1))
        elif isinstance(value, list):
            flat.update(lists.spread(name, value, flatten, depth))
        elif isinstance(value, str):
            flat[name] = _text(value)
        elif isinstance(value, int | float) or value is None:
            flat[name] = value
    return flat


def histogram_norm(value: Mapping[str, object]) -> float | None:
    """L2 norm of the values that a histogram counts (wandb: `bins` edges or `packedBins`, `values` counts)."""
    if value.get("_type") != "histogram":
        return None
    counts, edges = value.get("values"), value.get("bins")
    packed = value.get("packedBins")
    if isinstance(packed, dict) and isinstance(counts, list):
        low, size = packed.get("min"), packed.get("size")
        if isinstance(low, int | float) and isinstance(size, int | float):
            edges = [low + size * i for i in range(len(counts) + 1)]
    if not isinstance(counts, list) or not isinstance(edges, list) or len(edges) != len(counts) + 1:
        return math.nan
    try:
        middles = [(float(a) + float(b)) / 2 for a, b in itertools.pairwise(edges)]
        return math.sqrt(sum(float(n) * m * m for n, m in zip(counts, middles, strict=True)))
    except (TypeError, ValueError, OverflowError):
        return math.nan


def _text(value: str) -> str:
    """Text without lone surrogates, which no UTF-8 column can hold."""
    return value if value.isascii() else value.encode("utf-8", "replace").decode()


def to_frame(
    rows: Sequence[Mapping[str, Cell]], lines: Iterable[int] | None = None, names: Mapping[str, list[int]] | None = None
) -> pl.DataFrame:
    """Flat rows as a frame: numbers Float64, anything mixed with text as text. What it costs grows with the cells that are there.

    Args:
        rows: name → cell.
        lines: what becomes the column `line`.
        names: those of `places` that are wanted; absent, all are.
    """
    found = places(rows) if names is None else names
    columns = [column(name, [rows[at][name] for at in where], where, len(rows)) for name, where in found.items()]
    if lines is None:
        return pl.DataFrame(columns)
    own = [column.alias(LOGGED) if column.name == LINE else column for column in columns]
    return pl.DataFrame([*own, pl.Series(LINE, list(lines), dtype=pl.Int64)])


def places(rows: Sequence[Mapping[str, Cell]]) -> dict[str, list[int]]:
    """Every name and the rows that have it."""
    found: dict[str, list[int]] = {}
    for at, row in enumerate(rows):
        for name in row:
            if (where := found.get(name)) is not None:
                where.append(at)
            else:
                found[name] = [at]
    return found


def are_numbers(cells: Iterable[Cell]) -> bool:
    """Whether there is nothing but numbers and nulls."""
    return {type(cell) for cell in cells} <= {int, float, bool, type(None)}


def column(name: str, cells: list[Cell], where: list[int], height: int) -> pl.Series:
    """A column of so many rows from the cells of some."""
    if are_numbers(cells):
        series = pl.Series(name, [None if cell is None else _float(cell) for cell in cells], dtype=pl.Float64)
    else:
        series = pl.Series(name, [None if cell is None else str(cell) for cell in cells], dtype=pl.String)
    if len(where) == height:
        return series
    return pl.Series(name, [None], dtype=series.dtype).new_from_index(0, height).scatter(where, series)


def flatten_frame(frame: pl.DataFrame) -> pl.DataFrame:
    """A frame of a columnar reader as `flatten` would give it: `a/b` for nested objects, histograms as norms."""
    if not any(isinstance(kind, (*_NESTED, pl.Object)) for kind in frame.dtypes):
        return frame  # the schema of thousands of columns takes as long as to read a few rows
    for _ in range(DEPTH):
        nested = [(name, kind) for name, kind in frame.schema.items() if isinstance(kind, _NESTED)]
        if not nested:
            break
        for name, kind in nested:
            if not isinstance(kind, pl.Struct):
                frame = lists.spread_column(frame, name, flatten)
            elif {"_type", "values"} <= {f.name for f in kind.fields}:
                frame = frame.with_columns(_norms(frame[name]))
            else:
                frame = _unnest(frame, name)
    deep = [name for name, kind in frame.schema.items() if isinstance(kind, (*_NESTED, pl.Object))]
    return frame.drop(deep) if deep else frame


def _unnest(frame: pl.DataFrame, name: str) -> pl.DataFrame:
    inside = frame[name].struct.unnest()
    fresh = {f"{name}/{part}": inside[part].alias(f"{name}/{part}") for part in inside.columns}
    frame = frame.drop(name)
    return frame.with_columns(
        pl.coalesce(series, pl.col(new)).alias(new) if new in frame.columns else series for new, series in fresh.items()
    )


def _norms(column: pl.Series) -> pl.Series:
    """`histogram_norm` of a whole column."""
    fields = {f.name for f in column.dtype.fields}  # type: ignore[attr-defined]
    if "bins" not in fields or "packedBins" in fields:
        cells = [None if cell is None else histogram_norm(cell) for cell in column.to_list()]
        return pl.Series(column.name, cells, dtype=pl.Float64)
    counts, edges = pl.col("values"), pl.col("bins")
    fits = edges.list.len() == counts.list.len() + 1
    edges = pl.when(fits).then(edges)
    middle = (edges.list.slice(0, edges.list.len() - 1) + edges.list.slice(1)) / 2
    norm = (pl.when(fits).then(counts) * middle * middle).list.sum().sqrt()
    return (
        column.struct.unnest()
        .select(pl.when(pl.col("_type") == "histogram").then(pl.when(fits).then(norm).otherwise(float("nan"))))
        .to_series()
        .alias(column.name)
    )


def _float(cell: Cell) -> float:
    try:
        return float(cell)  # type: ignore[arg-type]
    except OverflowError:
        return math.inf if isinstance(cell, int) and cell > 0 else -math.inf
