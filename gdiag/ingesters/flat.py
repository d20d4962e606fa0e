"""JSON objects of any shape → flat rows → a frame."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import polars as pl

DEPTH: Final = 32
"""Objects nested deeper than this are no metrics."""
Cell = float | int | str | bool | None


def flatten(record: Mapping[str, object], prefix: str = "", depth: int = 0) -> dict[str, Cell]:
    """Nested objects as `a/b`; a list of one number as that number; a histogram as its norm where its bins say it.

    Raises:
        RecursionError: nested deeper than DEPTH.
    """
    if depth > DEPTH:
        raise RecursionError("nested too deep")
    flat: dict[str, Cell] = {}
    for key, value in record.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict):
            norm = histogram_norm(value)
            if norm is not None:
                flat[name] = norm
            else:
                flat.update(flatten(value, f"{name}/", depth + 1))
        elif isinstance(value, list):
            if len(value) == 1 and isinstance(value[0], int | float | str):
                flat[name] = value[0]
        elif isinstance(value, int | float | str | bool) or value is None:
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


def to_frame(rows: Sequence[Mapping[str, Cell]], lines: Iterable[int] | None = None) -> pl.DataFrame:
    """Flat rows as a frame: numbers Float64 (Int64 where all are whole), anything mixed with text as text."""
    names: dict[str, None] = {}
    for row in rows:
        names.update(dict.fromkeys(row))
    columns = {name: _column(name, [row.get(name) for row in rows]) for name in names}
    frame = pl.DataFrame(columns)
    if lines is not None:
        frame = frame.with_columns(line=pl.Series(list(lines), dtype=pl.Int64))
    return frame


def _column(name: str, cells: list[Cell]) -> pl.Series:
    kinds = {type(cell) for cell in cells}
    kinds.discard(type(None))
    if kinds <= {int, float, bool}:
        return pl.Series(name, [None if cell is None else float(cell) for cell in cells], dtype=pl.Float64)
    return pl.Series(name, [None if cell is None else str(cell) for cell in cells], dtype=pl.String)
