"""Steps that begin again with every epoch, counted on over the run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl

from gdiag.ingesters.reading import Reading

_FALLS: Final = 0.9
"""Share of the epochs' changes at which the step has to fall."""
_LONGER: Final = 1.5
"""An epoch so many times as long as the usual one holds a damaged step."""
_LARGEST: Final = 1 << 62
"""Steps above this are none, counted on or not."""


def counted(reading: Reading) -> Reading:
    """The reading with steps counted on where a column gives whole epochs and the step falls back with each.

    Not where the step falls back elsewhere or goes on while the epoch changes: that is a step of the run.
    """
    steps = reading.steps
    if steps is None or "epoch" not in steps.columns or steps["step"].is_sorted() or steps["run"].count():
        return reading
    rows = steps.filter(pl.col("rank").eq_missing(pl.lit(steps["rank"].min()))) if steps["rank"].count() else steps
    rows = rows.select("line", "step", "epoch").drop_nulls().sort("line", maintain_order=True)
    epoch, step = rows["epoch"].to_numpy(), rows["step"].to_numpy()
    if len(rows) < 3 or not np.isfinite(epoch).all() or (epoch != np.floor(epoch)).any():
        return reading
    rises, falls = np.diff(epoch) > 0, np.diff(step) < 0
    if not (rises & falls).any() or (rises & falls).sum() < _FALLS * rises.sum():
        return reading
    lasts = np.array(rows.group_by("epoch").agg(pl.col("step").max())["step"].to_list())
    usual = float(np.median(lasts))
    first, interval = int(step[0]), usual_advance(step)
    begins = step[1:][rises & falls]
    if (begins > first + interval).any() or usual <= 0:
        return reading
    length = int(lasts[lasts <= _LONGER * usual].max()) + interval - min(first, int(begins.min()))
    if float(length) * (float(epoch.max()) - float(epoch.min()) + 1) > _LARGEST:
        return reading
    of_row = pl.col("epoch").sort_by("line").forward_fill().backward_fill()
    known = steps.select(pl.col("line").sort(), shift=((of_row - epoch[0]) * length).cast(pl.Int64, strict=False))
    known = known.drop_nulls().unique("line", keep="first", maintain_order=True)
    return _shifted(reading, known, f"steps begin again every epoch: counted on, {length} an epoch")


def counted_by_lines(reading: Reading, lines: Sequence[int], length: int) -> Reading:
    """The reading with steps counted on by so many from each of some lines on."""
    if length * (len(lines) + 1) > _LARGEST:
        return reading
    known = pl.DataFrame({"line": [0, *lines], "shift": [length * i for i in range(len(lines) + 1)]})
    said = f"steps begin again {len(lines)} times after the same number: counted on as epochs of one run, {length} each"
    return _shifted(reading, known, said)


def usual_advance(step: npt.NDArray[np.int64]) -> int:
    """The step's usual advance from row to row."""
    ahead = np.diff(step)
    return int(np.quantile(ahead[ahead > 0], 0.5, method="lower")) if (ahead > 0).any() else 1


def _shifted(reading: Reading, known: pl.DataFrame, said: str) -> Reading:
    """Every table's steps further by the `shift` of its line, or of the line before it."""
    source = replace(reading.source, notes=(*reading.source.notes, said))
    steps, layers, events = (_moved(table, known) for table in (reading.steps, reading.layers, reading.events))
    return replace(reading, source=source, steps=steps, layers=layers, events=events)


def _moved(table: pl.DataFrame | None, known: pl.DataFrame) -> pl.DataFrame | None:
    if table is None or not {"line", "step"} <= set(table.columns):
        return table
    lines = table.select(pl.col("line").cast(pl.Int64), at=pl.int_range(pl.len())).sort("line", nulls_last=True)
    shift = lines.join_asof(known.cast({"line": pl.Int64, "shift": pl.Int64}), on="line").sort("at")["shift"]
    return table.with_columns(pl.col("step") + shift.fill_null(0))
