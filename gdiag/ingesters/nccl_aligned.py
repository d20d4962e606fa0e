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

from gdiag.ingesters.nccl_rows import EXTRA, FLAGS, GROUP, REDOPS, TYPE_NAMES, empty, text_lines

_FIGURES: Final = 10
"""Root and figures of a row of two sides, and one to spare."""
_MOST: Final = 18
"""The same with the figures of -I."""


class Lines:
    """Where the lines of a piece lie: numbered from 1, without carriage returns."""

    def __init__(self, piece: bytes) -> None:
        self.data = np.frombuffer(piece, dtype=np.uint8)
        self.ends = np.flatnonzero(self.data == ord("\n"))
        if len(self.data) and self.data[-1] != ord("\n"):
            self.ends = np.append(self.ends, len(self.data) - 1)

    def spread(self, lines: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """A mask of lines as one of bytes."""
        return np.repeat(lines, np.diff(self.ends, prepend=-1))

    def texts(self, wanted: NDArray[np.bool_]) -> pl.DataFrame:
        """The wanted lines: line, text."""
        picked = text_lines(_kept(self.data, self.spread(wanted)), 1)
        at = np.flatnonzero(wanted) + 1
        if picked.height == len(at):
            return picked.with_columns(line=pl.Series(at))
        return text_lines(self.data.tobytes(), 1).filter(pl.col("line").is_in(at.tolist()))


def cells_of(lines: Lines, *, most: bool = False) -> pl.DataFrame:
    """Cells of the lines that may be nothing but a row.

    line, size, count, type, op (an operation or the first figure), figures f0, f1, …, and `n`, the number of figures
    there are with what stands as op; N/A is -inf. most: rows may have the figures of -I.
    """
    figures = dict.fromkeys([f"f{i}" for i in range(_MOST if most else _FIGURES)], pl.Float64)
    schema: dict[str, type[pl.DataType]] = {
        "prefix": pl.String, "size": pl.Int64, "count": pl.Int64, "type": pl.String, "op": pl.String, **figures,
    }  # fmt: skip
    free = np.ones(len(lines.ends), dtype=bool)
    free[np.searchsorted(lines.ends, np.flatnonzero(lines.data == ord("#")))] = False
    if lines.data.max(initial=0) > 127:  # rows are ASCII
        free[np.searchsorted(lines.ends, np.flatnonzero(lines.data > 127))] = False
    single = _single_blanks(lines, free)
    cells = pl.read_csv(
        io.BytesIO(" ".join(schema).encode() + b"\n" + single), separator=" ", quote_char=None, schema=schema,
        truncate_ragged_lines=True, ignore_errors=True, columns=[name for name in schema if name != "prefix"],
    )  # fmt: skip
    at = np.flatnonzero(free)
    if cells.height != len(at) or not len(at):
        return cells.clear().with_columns(line=pl.lit(None, pl.Int64), n=pl.lit(None, pl.Int64))
    data = np.frombuffer(single, dtype=np.uint8)
    stops = data == ord("\n")
    gaps = np.flatnonzero(stops | (data == ord(" ")))
    ends = np.append(np.flatnonzero(stops[gaps]), len(gaps))[: len(at)]
    row = pl.col("type").is_in(TYPE_NAMES) & pl.col("size").is_not_null() & pl.col("count").is_not_null()
    rows = cells.select(row.fill_null(value=False)).to_series()
    cells = cells.with_columns(line=pl.Series(at + 1), n=pl.Series(np.diff(ends, prepend=-1) - 4))
    return cells if rows.all() else cells.filter(rows)


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
    for mine, shift, figures, head in _shapes(cells, op, heads):
        flags = heads.row(head, named=True) if head >= 0 else dict.fromkeys(FLAGS, False)
        sides.add(mine, columns[shift : shift + figures], flags)
    return sides.table(cells, op)


def _shapes(
    cells: pl.DataFrame, op: NDArray[np.bool_], heads: pl.DataFrame
) -> Iterator[tuple[NDArray[np.int64], int, int, int]]:
    """Rows of one shape, which column their figures begin in and how many there are, and the header above them, -1 without one."""
    above = np.searchsorted(heads["line"].to_numpy(), cells["line"].to_numpy()) - 1
    # Headers that say the same are one: a log repeats its own.
    numbers: dict[tuple[bool, ...], int] = {}
    kinds = [numbers.setdefault(kind, i) for i, kind in enumerate(heads.select(FLAGS).rows())]
    figures = cells["n"].to_numpy() - op
    most = sum(name.startswith("f") for name in cells.columns)
    fits = (figures > 0) & (figures <= most)
    code = ((np.array([*kinds, -1])[above] + 1) * (most + 1) + np.where(fits, figures, 0)) * 2 + op
    for value in np.flatnonzero(np.bincount(code)).tolist():
        if count := value // 2 % (most + 1):
            yield np.flatnonzero(code == value), value % 2, count, value // 2 // (most + 1) - 1


class _Sides:
    """Figures of both sides of rows: the out-of-place side of row i at 2i, the in-place side at 2i + 1."""

    def __init__(self, rows: int) -> None:
        self.figures: dict[str, NDArray[np.float64]] = {}
        self.whole = np.zeros(2 * rows, dtype=bool)
        self.root = np.full(rows, np.nan)
        self.cpu_time = np.zeros(rows, dtype=bool)

    def add(self, rows: NDArray[np.int64], columns: list[NDArray[np.float64]], flags: dict[str, Any]) -> None:
        """Take the sides of `rows` with exactly the figures `columns` where they make whole sides; N/A is -inf."""
        width = 8 if flags["per_iteration"] else 3 if flags["unchecked"] else 4
        groups = 1 if flags["in_place_only"] else 2
        rooted = len(columns) - groups * width
        if rooted not in (0, 1) or (flags["has_root"] and not rooted):
            return
        own = [column[rows] for column in columns]
        # A word among the figures, or a root in the place of a time: another layout.
        fit = np.logical_and.reduce([~np.isnan(column) for column in own])
        fit &= (np.abs(own[0]) < 1 << 31) & (own[0] == np.trunc(own[0])) if rooted else own[0] >= 0
        if not fit.all():
            rows, own = rows[fit], [column[fit] for column in own]
        self.cpu_time[rows] = flags["cpu_time"]
        if rooted:
            self.root[rows] = own[0]
        for group in range(groups):
            at = 2 * rows + (group if groups > 1 else 1)
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
        redop = pl.when(pl.Series(op)).then("op")
        head = cells.select(
            "line", "size", "count", pl.col("type").cast(pl.Categorical), redop=redop.cast(pl.Categorical),
            root=pl.Series(self.root, nan_to_null=True).cast(pl.Int32), cpu_time=pl.Series(self.cpu_time),
        )[at // 2]  # fmt: skip
        self.figures.setdefault("wrong", np.full(len(self.whole), np.nan))
        for values in self.figures.values():
            values[values == -np.inf] = np.nan
        # A frame holds on to the arrays it is made of; what is gathered is its own, and the next piece can have their memory.
        side = pl.DataFrame({"in_place": np.arange(len(self.whole)) % 2 == 1, **self.figures})[at].with_columns(
            pl.col(name).fill_nan(None) for name in ("wrong", *EXTRA) if name in self.figures
        )
        return pl.concat([head, side], how="horizontal")


def _single_blanks(lines: Lines, wanted: NDArray[np.bool_]) -> bytes:
    """The wanted lines with runs of blanks made one, none at an end, and N/A as -inf."""
    keep = lines.spread(wanted)
    idle = lines.data[:-1] == ord(" ")
    idle &= lines.data[1:] <= ord(" ")
    keep[:-1] &= np.logical_not(idle, out=idle)
    single = _kept(lines.data, keep)
    return single.replace(b"N/A", b"-inf") if b"N" in single else single


def _kept(data: NDArray[np.uint8], keep: NDArray[np.bool_]) -> bytes:
    """The bytes to keep: polars packs them in a third of numpy's time."""
    kept: bytes = pl.Series(data).filter(pl.Series(keep)).to_numpy().tobytes()
    return kept
