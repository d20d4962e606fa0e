"""Records made by hand from columns of `steps`."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from gdiag.model import Run, Source, Value
from gdiag.schema import TABLES, Records


def records(
    first: int = 0,
    config: dict[str, Value] | None = None,
    ranks: Sequence[int] | None = None,
    **columns: Sequence[float],
) -> Records:
    """One run of one file, one row per value, steps counting from `first`."""
    rows = len(next(iter(columns.values())))
    step = list(range(first, first + rows)) if ranks is None else [first + k // len(set(ranks)) for k in range(rows)]
    ranked: list[int | None] = [*ranks] if ranks else [None] * rows
    keys = {"run": ["run"] * rows, "rank": ranked, "step": step, "source": [0] * rows}
    frame = pl.DataFrame({**keys, "line": list(range(1, rows + 1)), **columns}, strict=False)
    steps = frame.cast({name: TABLES["steps"][name] for name in frame.columns})
    source = Source("run.jsonl", "jsonl", rows, columns={c: c for c in columns})
    return Records((Run("run", sources=(0,), config=config or {}),), (source,), steps)
