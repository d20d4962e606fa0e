"""Rows of nccl-tests tables that are nothing but a row: nearly all of a log, split by a CSV reader and cast together.

With runs of blanks made one, the lines of a piece have one layout: nothing or one word of a prefix, size, count, type, and
figures. Rows of one shape (same columns, same number of figures) are cast together. What does not fit exactly is left to
`nccl_rows`, which looks at lines by pattern.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import polars as pl
import polars.selectors as cs
from numpy.typing import NDArray

from gdiag.ingesters.nccl_rows import EXTRA, FLAGS, GROUP, REDOPS, TYPE_NAMES, empty

_FOREIGN: Final = ["NCCL", "Test "]
"""Signs of lines that are not only a row, beside #."""
_FIGURES: Final = 10
"""One more than root and figures of a row of two sides: a row that fills it is of another layout."""
_MOST: Final = 18
"""The same with the figures of -I."""


def cells_of(piece: bytes, lines: pl.DataFrame, *, most: bool = False) -> tuple[pl.DataFrame, pl.Series]:
    """Cells of the lines that may be nothing but a row, and which of `lines` those are.

    piece: the bytes of the lines, without carriage returns. The cells are line, prefix, size, count, type, op (an operation
    or the first figure), and figures f0, f1, …, one more than a row has; most: rows may have the figures of -I.
    """
    figures = dict.fromkeys([f"f{i}" for i in range(_MOST if most else _FIGURES)], pl.Float64)
    schema: dict[str, type[pl.DataType]] = {
        "prefix": pl.String, "size": pl.Int64, "count": pl.Int64, "type": pl.String, "op": pl.String, **figures,
    }  # fmt: skip
    data = np.frombuffer(piece, dtype=np.uint8)
    ends = np.append(np.flatnonzero(data[:-1] == ord("\n")), len(data) - 1)
    free = np.ones(len(ends), dtype=bool)
    free[np.searchsorted(ends, np.flatnonzero(data == ord("#")))] = False
    single = _single_blanks(data, np.repeat(free, np.diff(ends, prepend=-1)))
    cells = pl.read_csv(
        io.BytesIO(" ".join(schema).encode() + b"\n" + single), separator=" ", quote_char=None, schema=schema,
        truncate_ragged_lines=True, ignore_errors=True,
    )  # fmt: skip
    bare = np.zeros(lines.height, dtype=bool)
    at = np.flatnonzero(free)
    if cells.height != len(at) or lines.height != len(free):
        return cells.clear().with_columns(line=pl.lit(None, pl.Int64)), pl.Series(bare)
    plain = cells.select(
        pl.col("type").is_in(TYPE_NAMES).fill_null(value=False)
        & pl.col("size").is_not_null()
        & pl.col("count").is_not_null()
    ).to_series()
    plain &= ~lines["text"].filter(pl.Series(free)).str.contains_any(_FOREIGN)
    bare[at] = plain.to_numpy()
    return cells.with_columns(line=lines["line"].filter(pl.Series(free))).filter(plain), pl.Series(bare)


def aligned(cells: pl.DataFrame, heads: pl.DataFrame) -> pl.DataFrame:
    """Complete rows as `nccl_rows.rows` gives them; rows whose figures fit no layout are left out.

    cells: as `cells_of` gives them. heads: as `nccl_rows.headers` gives them, line ascending.
    """
    if not cells.height:
        return empty()
    op = cells.select(pl.col("op").is_in(REDOPS).fill_null(value=False)).to_series().to_numpy()
    # Without an operation its cell holds the first figure.
    first = pl.lit(None, pl.Float64) if op.all() else pl.col("op").cast(pl.Float64, strict=False)
    columns = [column.to_numpy() for column in cells.select(first, cs.float())]
    sides = _Sides(cells.height)
    for mine, shift, head in _shapes(cells, op, heads):
        flags = heads.row(head, named=True) if head >= 0 else dict.fromkeys(FLAGS, False)
        sides.add(mine, [column[mine] for column in columns[shift:]], flags)
    return sides.table(cells, op)


def _shapes(
    cells: pl.DataFrame, op: NDArray[np.bool_], heads: pl.DataFrame
) -> Iterator[tuple[NDArray[np.int64], int, int]]:
    """Rows of one shape, which column their figures begin in, and the header above them, -1 without one."""
    above = np.searchsorted(heads["line"].to_numpy(), cells["line"].to_numpy()) - 1
    # Headers that say the same are one: a log repeats its own.
    kinds = heads.select(FLAGS).rows()
    same = np.array([*(kinds.index(kind) for kind in kinds), -1])[above]
    code = 2 * (same + 1) + op
    for value in np.flatnonzero(np.bincount(code)).tolist():
        yield np.flatnonzero(code == value), value % 2, value // 2 - 1


class _Sides:
    """Figures of both sides of rows: the out-of-place side of row i at 2i, the in-place side at 2i + 1."""

    def __init__(self, rows: int) -> None:
        self.figures: dict[str, NDArray[np.float64]] = {}
        self.whole = np.zeros(2 * rows, dtype=bool)
        self.root = np.full(rows, np.nan)
        self.cpu_time = np.zeros(rows, dtype=bool)

    def add(self, rows: NDArray[np.int64], columns: list[NDArray[np.float64]], flags: dict[str, Any]) -> None:
        """Take the sides of `rows` with the figures `columns` where they leave no gap and make whole sides.

        An absent figure is NaN, N/A is -inf.
        """
        width, groups = (
            8 if flags["per_iteration"] else 3 if flags["unchecked"] else 4,
            1 if flags["in_place_only"] else 2,
        )
        there = [~np.isnan(column) for column in columns]
        count = np.add.reduce(there, dtype=np.int8)
        self.cpu_time[rows] = flags["cpu_time"]
        for rooted in (0, 1):
            used = rooted + groups * width
            # A number too many or a gap among the figures: another layout.
            fit = (count == used) & np.logical_and.reduce(there[:used])
            if not rooted:
                # A root in the place of a time: a cell is missing.
                fit &= (columns[0] >= 0) & (not flags["has_root"])
            if not fit.any():
                continue
            mine, own = (rows, columns) if fit.all() else (rows[fit], [column[fit] for column in columns])
            if rooted:
                self.root[mine] = own[0]
            for group in range(groups):
                at = 2 * mine + (group if groups > 1 else 1)
                self.whole[at] = True
                for i, name in enumerate((*GROUP, *EXTRA)[:width]):
                    values = own[rooted + group * width + i]
                    held = self.figures.setdefault(name, np.full(len(self.whole), np.nan))
                    held[at] = values * 1e3 if name == "time" and flags["milliseconds"] else values

    def table(self, cells: pl.DataFrame, op: NDArray[np.bool_]) -> pl.DataFrame:
        """The whole sides, out of place before in place, with the other cells of their rows."""
        if not self.figures:
            return empty()
        at = np.flatnonzero(self.whole)
        row = at // 2
        redop = pl.when(pl.Series(op)).then("op")
        head = cells.select(
            "line", "size", "count", pl.col("type").cast(pl.Categorical), redop=redop.cast(pl.Categorical),
            root=pl.Series(self.root, nan_to_null=True).cast(pl.Int32), cpu_time=pl.Series(self.cpu_time),
        )[row]  # fmt: skip
        self.figures.setdefault("wrong", np.full(len(self.whole), np.nan))
        figures = {name: np.where(values[at] == -np.inf, np.nan, values[at]) for name, values in self.figures.items()}
        side = pl.DataFrame({"in_place": at % 2 == 1, **figures}).with_columns(
            pl.col(name).fill_nan(None) for name in ("wrong", *EXTRA) if name in figures
        )
        return pl.concat([head, side], how="horizontal")


def _single_blanks(data: NDArray[np.uint8], keep: NDArray[np.bool_]) -> bytes:
    """The bytes to keep with runs of blanks made one and N/A as -inf."""
    blank = data == ord(" ")
    keep[1:] &= ~(blank[1:] & blank[:-1])
    # polars packs a mask's bytes in a third of numpy's time.
    single: bytes = pl.Series(data).filter(pl.Series(keep)).to_numpy().tobytes()
    return single.replace(b"N/A", b"-inf") if b"N/A" in single else single
