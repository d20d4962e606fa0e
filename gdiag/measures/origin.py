"""Where gradients turned non-finite.

Backward goes from the head to the embedding. A gradient that turns non-finite inside a layer therefore reaches every
shallower layer and no deeper one: the deepest non-finite layer below finite deeper ones is where it began.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from gdiag.measures.depth import block_path, forward_order
from gdiag.measures.layers import LayerTable, column_median


@dataclass(frozen=True, slots=True)
class Origin:
    """Where non-finite gradients began."""

    step: int
    layer: str | None
    """Deepest non-finite layer, or its block when all of it is; None when all that carry a gradient turned at once."""
    nonfinite: int
    total: int
    finite_deeper: int
    """Layers nearer the loss that were still finite."""
    isolated: bool
    """Layers nearer the input were finite too: only this layer's own gradient is lost, backward went through."""
    lasting: bool
    """Not finite to the end of the log; else the layers recovered, as after a skipped step."""
    rows: int
    """Rows with a non-finite value."""
    stays: bool
    """Other layers were lost in the rows before as well and came back: what an overflow of all left behind stays."""
    ratio: float | None
    """Median layer norm in the row before / its median over the 20 rows before that."""


def origin(table: LayerTable, within: int = 20) -> Origin | None:
    """Where and at which step gradients turned non-finite for good, else for the first time; None when all are finite.

    Args:
        table: gradient or parameter norms of all layers.
        within: rows before it in which a rise is looked for.
    """
    lost = [~pl.col(c.column).is_finite().fill_null(True) for c in table.columns]
    bad_rows = table.frame.select(pl.any_horizontal(lost)).to_series().to_numpy()
    if not bad_rows.any():
        return None
    first_row = _terminal(bad_rows)
    seen = _seen(table.frame.row(-1))
    if first_row is not None and _again(table.frame.filter(bad_rows).select(lost), seen, len(bad_rows) - first_row):
        first_row = None
    lasting = first_row is not None
    first_row = int(bad_rows.argmax()) if first_row is None else first_row
    left = _left(table.frame[first_row:].select(lost), seen) if lasting else None
    first_row += left or 0
    row = table.frame.row(first_row)
    bad = np.array([v is not None and not np.isfinite(v) for v in row])
    seen = _seen(row)
    order = [i for i in forward_order(table.columns) if seen[i]]
    place = [k for k, i in enumerate(order) if bad[i]]
    deepest = place[-1]
    deeper = len(order) - 1 - deepest
    isolated = place[0] > 0 and len(place) < len(order)
    layer: str | None = None
    if deeper or isolated:
        column = table.columns[order[deepest]]
        path = block_path(column)
        mates = [i for i in order if block_path(table.columns[i]) == path]
        layer = path if all(bad[i] for i in mates) else column.layer
    before = table.frame[max(0, first_row - within) : first_row].to_numpy().astype(np.float64)
    ratio = None
    if len(before) >= 3:
        usual = column_median(np.where(np.isfinite(before[:-1]) & (before[:-1] > 0), before[:-1], np.nan))
        with np.errstate(divide="ignore", invalid="ignore"):
            rises = before[-1] / usual
        rises = rises[np.isfinite(rises)]
        ratio = float(np.median(rises)) if len(rises) else None
    return Origin(
        step=int(table.step[first_row]), layer=layer, nonfinite=len(place), total=len(order), finite_deeper=deeper,
        isolated=isolated, ratio=ratio, lasting=lasting,
        rows=int(bad_rows[first_row:].sum()) if left else int(bad_rows.sum()), stays=left is not None,
    )  # fmt: skip


def _terminal(bad: NDArray[np.bool_]) -> int | None:
    """Row at which the stretch of bad rows begins that lasts to the end (nine of ten rows); None when the end is good."""
    if not bad[-1]:
        return None
    share = np.cumsum(bad[::-1])[::-1] / np.arange(len(bad), 0, -1)
    return int(np.argmax(bad & (share >= 0.9)))


STAYING_ROWS: Final = 10
"""Rows in which the same layers alone are lost from which the others have come back for good."""


def _left(lost: pl.DataFrame, seen: NDArray[np.bool_]) -> int | None:
    """The row from which on a part of the layers alone is lost, to the end, after rows that lost more; None without one.

    A loss scale that is too high for all layers falls until they are finite; what is not finite at any scale stays.
    """
    cells = lost.to_numpy()
    end = cells[-1]
    if end[seen].all():
        return None
    same = (cells == end).all(axis=1)
    first = len(same) - int(np.argmin(same[::-1])) if not same.all() else 0
    more = cells[:first].any(axis=1) & (cells[:first] & ~end).any(axis=1)
    return first if first and bool(more.any()) and len(same) - first >= STAYING_ROWS else None


def _seen(row: tuple[float | None, ...]) -> NDArray[np.bool_]:
    """Layers with a gradient: those without any say nothing."""
    return np.array([value is not None and value != 0 for value in row])


def _again(lost: pl.DataFrame, seen: NDArray[np.bool_], last: int) -> bool:
    """Whether the `last` rows, one or two, are but the latest of several: earlier ones lost the same layers and came back.

    Where all layers are lost the run may have ended there, whatever steps were skipped before.

    Args:
        lost: which layers are not finite, of the rows in which any is not.
        seen: layers with a gradient in the last row.
        last: how many of the rows end the log.
    """
    cells = lost.to_numpy()
    end = cells[-1]
    return last < 3 and not end[seen].all() and bool((cells[: len(cells) - last] == end).all(axis=1).any())
