"""The small JSON file that `gdiag nccl --baseline-save` writes: one row per collective, number of ranks and size."""

from __future__ import annotations

import json
import math
from typing import Any, Final

import polars as pl

from gdiag.errors import InputError
from gdiag.ingesters.reading import Input, Options, Reading
from gdiag.model import Source

FORMAT: Final = "gdiag-baseline"
_MARK: Final = '"gdiag_baseline"'


def recognise(given: Input) -> float:
    head = given.head.lstrip()
    return 1.0 if head.startswith(b"{") and _MARK.encode() in head[:200] else 0.0


def write(table: pl.DataFrame) -> str:
    """The file's text for a table with collective, ranks, size [B] and busbw [GB/s]."""
    rows = [[name, ranks, size, round(busbw, 4)] for name, ranks, size, busbw in table.iter_rows()]
    columns = ["collective", "ranks", "size", "busbw"]
    lines = ",\n  ".join(json.dumps(row) for row in rows)
    return f'{{"gdiag_baseline": 1, "columns": {json.dumps(columns)}, "rows": [\n  {lines}\n]}}\n'


def _row(name: object, ranks: object, size: object, busbw: object) -> tuple[str, int, int, float]:
    """Collective (empty: not known), ranks (0: not known), size [B], busbw [GB/s].

    Raises:
        ValueError: a cell is of another kind, or a figure that no benchmark prints.
    """
    whole = all(isinstance(n, int) and not isinstance(n, bool) for n in (ranks, size))
    if not isinstance(name, str) or not whole or not isinstance(busbw, int | float) or isinstance(busbw, bool):
        raise ValueError(name)
    if not (0 <= int(str(ranks)) < 1 << 31 and 0 < int(str(size)) < 1 << 63 and 0 <= busbw < math.inf):
        raise ValueError(busbw)
    return name, int(str(ranks)), int(str(size)), float(busbw)


def read(given: Input, options: Options) -> Reading:  # noqa: ARG001 - our own file has no columns to map
    try:
        document: Any = json.loads(given.data())
        rows = [_row(*row) for row in document["rows"]]
    except (ValueError, KeyError, TypeError, OverflowError):
        raise InputError(f"{given.path} is a damaged gdiag baseline: write it again with --baseline-save") from None
    baselines = pl.DataFrame(
        rows, schema={"collective": pl.String, "ranks": pl.Int32, "size": pl.Int64, "busbw": pl.Float64}, orient="row"
    )
    return Reading(Source(given.path, FORMAT, len(rows)), baselines=baselines)
