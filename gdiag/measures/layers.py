"""Per-layer series, each held against its own history and against its peers.

Method: every layer's log norm is held against the median of its own two preceding blocks of rows and scaled by the
median absolute deviation there, with a threshold that is raised for the number of layers looked at (max-T).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from gdiag.schema import LayerColumn, Quantity

Floats = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]
Steps = npt.NDArray[np.int64]

BLOCK_COLUMNS = 128
"""Columns turned into arrays at a time: 2,000 layers of 100,000 rows are then never held twice."""
FIRST_ROWS = 8
"""Rows at the start of a run that have no history to be held against."""
PEERS = 256
"""Layers that the median of the peers is taken over, evenly spread."""


@dataclass(frozen=True, slots=True)
class LayerTable:
    """One quantity of all layers, one row per logged step, reduced over ranks."""

    columns: tuple[LayerColumn, ...]
    step: Steps
    """Ascending, unique; shape (n,)."""
    frame: pl.DataFrame
    """One Float64 column per layer, n rows: null = not logged, NaN or ±inf = logged so."""
    line: Steps
    """Line of each row in its source; shape (n,)."""
    source: Steps
    """Index into Records.sources; shape (n,)."""

    def blocks(self, size: int = BLOCK_COLUMNS) -> Iterator[tuple[int, Floats]]:
        """(first column, values) of consecutive blocks; values (n, ≤ size), null and NaN both NaN, ±inf kept."""
        for first in range(0, len(self.columns), size):
            names = [c.column for c in self.columns[first : first + size]]
            yield first, self.frame.select(names).to_numpy().astype(np.float64, copy=False)

    def values(self, index: int) -> Floats:
        """The series of one layer; shape (n,), null and NaN both NaN."""
        return self.frame[self.columns[index].column].to_numpy().astype(np.float64, copy=False)

    def row_near(self, step: int) -> dict[str, object]:
        """Source and line of the last row at or before `step`."""
        at = max(0, int(np.searchsorted(self.step, step, side="right")) - 1)
        return {"source": int(self.source[at]), "line": int(self.line[at]), "step": int(self.step[at])}


@dataclass(frozen=True, slots=True)
class LayerScan:
    """Every layer's log value against its own trailing median."""

    columns: tuple[LayerColumn, ...]
    step: Steps
    change: Singles
    """log(value / median of the blocks before), shape (n, layers); NaN where not logged, zero or not finite."""
    scale: Singles
    """Robust standard deviation of the log value there, same shape."""
    peers: Singles
    """Median change over the layers, shape (n,)."""
    warm: int
    """Rows at the start that have no history: they are not judged."""

    @property
    def threshold(self) -> float:
        """z above which one of so many layers is not expected to rise by chance: sqrt(6² + 2 ln m), Gaussian tail."""
        return float(np.sqrt(36.0 + 2.0 * np.log(max(1, len(self.columns)))))

    def z(self) -> Singles:
        """change / scale, shape (n, layers)."""
        return self.change / self.scale


def layer_table(layers: pl.DataFrame, catalogue: Sequence[LayerColumn], quantity: Quantity) -> LayerTable | None:
    """One quantity of all layers from a run's `layers` rows (file order, all ranks), or None when nothing was logged.

    Rows without rank are used when they hold the quantity, else the median over ranks. A step logged twice (resume,
    sparse rows) is used once: the last value of each column.
    """
    held = set(layers.columns)
    columns = tuple(c for c in catalogue if c.quantity == quantity and c.column in held)
    if not columns or not layers.height:
        return None
    names = [c.column for c in columns]
    logged = pl.any_horizontal(pl.col(n).is_not_null() for n in names) & pl.col("step").is_not_null()
    frame = layers.lazy().filter(logged).select("rank", "step", "source", "line", *names).collect()
    reduced = frame.filter(pl.col("rank").is_null())
    if reduced.height:
        frame = reduced
    elif frame["rank"].n_unique() > 1:
        frame = frame.group_by("step").agg(
            pl.lit(None, pl.Int32).alias("rank"), pl.col("source", "line").last(), pl.col(names).median()
        )
    if frame["step"].n_unique() < frame.height:
        frame = frame.group_by("step", maintain_order=True).agg(
            pl.col("rank", "source", "line").last(), pl.col(names).drop_nulls().last()
        )
    frame = frame.sort("step")
    kept = tuple(c for c in columns if frame[c.column].count())
    if not kept:
        return None
    return LayerTable(
        kept, frame["step"].to_numpy(), frame.select(c.column for c in kept),
        frame["line"].fill_null(0).to_numpy(), frame["source"].fill_null(0).to_numpy(),
    )  # fmt: skip


def scan_layers(values: LayerTable, floor: float = 0.05) -> LayerScan:
    """Hold every layer's log value against the median of its two preceding blocks of rows.

    A block has n/16 rows, between 8 and 100. `floor` is the smallest scale in log units.
    """
    rows, layers = len(values.step), len(values.columns)
    block = int(np.clip(rows // 16, 8, 100))
    change = np.full((rows, layers), np.nan, np.float32)
    scale = np.full((rows, layers), np.nan, np.float32)
    for first, chunk in values.blocks():
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log(chunk)
        logs[~np.isfinite(logs)] = np.nan
        width = slice(first, first + chunk.shape[1])
        change[:, width], scale[:, width] = against_history(logs, block, floor)
    sample = change[:, np.unique(np.linspace(0, layers - 1, min(layers, PEERS)).astype(int))]
    return LayerScan(values.columns, values.step, change, scale, row_median(sample).astype(np.float32), FIRST_ROWS)


def against_history(logs: Floats, block: int, floor: float) -> tuple[Floats, Floats]:
    """(change, scale) of `logs` (n, m) against the rows before; the first FIRST_ROWS rows against themselves.

    History is up to two blocks long; at the start of a run it is what there is, in blocks that grow with it.
    """
    change, scale = np.full(logs.shape, np.nan), np.full(logs.shape, np.nan)
    for start, stop, begin in spans(len(logs), block):
        past = logs[begin : max(start, FIRST_ROWS)]
        middle = column_median(past)
        change[start:stop] = logs[start:stop] - middle
        scale[start:stop] = 1.4826 * column_median(np.abs(past - middle))
    typical = column_median(scale)
    return change, np.maximum(scale, np.maximum(floor, 0.5 * typical))


def spans(rows: int, block: int) -> Iterator[tuple[int, int, int]]:
    """(start, stop, begin of its history) of consecutive stretches of rows, at most `block` long."""
    start = 0
    while start < rows:
        length = min(block, max(FIRST_ROWS, start // 2))
        yield start, min(rows, start + length), max(0, start - 2 * block)
        start += length


def column_median(values: Floats) -> Floats:
    """Median of each column that ignores NaN; NaN for a column without a number. Shape (n, m) → (m,)."""
    ordered = np.sort(values, axis=0)  # NaN sorts last
    count = np.count_nonzero(~np.isnan(ordered), axis=0)
    low, high = np.maximum(count - 1, 0) // 2, np.maximum(count // 2, 0)
    at = np.arange(values.shape[1])
    if not len(ordered):
        return np.full(values.shape[1], np.nan)
    middle: Floats = (ordered[low, at] + ordered[np.minimum(high, len(ordered) - 1), at]) / 2
    return np.where(count > 0, middle, np.nan)


def row_median(values: Floats | Singles) -> Floats:
    """Median of each row that ignores NaN; NaN for a row without a number. Shape (n, m) → (n,)."""
    return column_median(np.asarray(values, np.float64).T)
