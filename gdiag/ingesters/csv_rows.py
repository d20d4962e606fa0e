"""Delimited text row by row: repeated and changed headers, ragged and cut rows."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import polars as pl

from gdiag.ingesters import flat, grouping_marks, rare, short_rows
from gdiag.ingesters.values import escape

LINE: Final = "line"
_MOST_LINES: Final = 100
"""Lines that a quoted cell may go over."""
_UNCUT: Final = "\0"
"""Stands for a row that csv cannot cut into cells; no cell holds it, for NUL bytes are dropped."""
_HEADERS: Final = 64
"""Headers whose rows are put below one another column by column."""
_SAME: Final = 0.6
"""Share of known names from which a row of words is a header again."""


@dataclass(frozen=True, slots=True)
class Shape:
    """How a table is written."""

    separator: str
    """One character, or a blank for any white space."""
    names: tuple[str, ...]
    skip: int
    """Lines before the first data row."""
    decimal_comma: bool = False
    regular: bool = False
    """Whether all rows of the sample have as many cells as there are names."""


@dataclass(slots=True)
class Rows:
    """What the row-wise reader found."""

    frames: list[pl.DataFrame] = field(default_factory=list)
    rejects: list[tuple[int, str, str]] = field(default_factory=list)
    headers: int = 0
    """Header rows after the first."""
    rows: int = 0
    notes: list[str] = field(default_factory=list)


def read(data: bytes, shape: Shape) -> Rows:
    """All rows as text columns with a `line` column; a frame per header."""
    found = Rows()
    text = data.decode("utf-8", errors="replace").replace("\0", "")
    names = list(shape.names)
    cells: list[list[str]] = []
    lines: list[int] = []
    complete = text.endswith(("\n", "\r"))
    last = text.count("\n") + (not complete)
    for number, row in _split(text, shape.separator):
        if number <= shape.skip or not any(cell.strip() for cell in row):
            continue
        if len(row) == 1 and row[0] is _UNCUT:
            found.rows += 1
            found.rejects.append((number, "cannot be cut into cells", ""))
            continue
        row = [cell.strip() for cell in row]
        if row[0].startswith("#"):
            continue
        if _is_header(row, names):
            found.headers += 1
            if [c for c in row if c] != [n for n in names if n]:
                _close(found, shape, names, cells, lines)
                names, cells, lines = row, [], []
            continue
        found.rows += 1
        if len(row) > len(names) and any(row[len(names) :]):
            found.rejects.append((number, f"{len(row)} cells under {len(names)} names", escape(",".join(row))))
        elif len(row) < len(names) and number == last and not complete:
            found.rejects.append((number, "cut off at the end of the file", escape(",".join(row))))
        else:
            cells.append(row[: len(names)])
            lines.append(number)
    _close(found, shape, names, cells, lines)
    return found


def _split(text: str, separator: str) -> Iterator[tuple[int, list[str]]]:
    if separator == " ":
        yield from ((i, line.split()) for i, line in enumerate(text.splitlines(), 1))
        return
    csv.field_size_limit(1 << 24)
    # Newlines of every kind are told apart by StringIO; csv alone takes a lone carriage return for a cell's content.
    lines = list(io.StringIO(text, newline=None))
    reader = csv.reader(lines, delimiter=separator, strict=False)
    before = 0
    while True:
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error:
            row = [_UNCUT]
        if reader.line_num > before + 1 and (reader.line_num - before > _MOST_LINES or reader.line_num == len(lines)):
            # A quotation mark that nothing closes has swallowed the rows behind it.
            yield from _apart(lines[before : reader.line_num], separator, before)
        else:
            yield reader.line_num, row
        before = reader.line_num


def _apart(lines: list[str], separator: str, before: int) -> Iterator[tuple[int, list[str]]]:
    """Every line as a row of its own, quotation marks as text."""
    for number, line in enumerate(lines, before + 1):
        try:
            yield number, next(csv.reader([line], delimiter=separator, quoting=csv.QUOTE_NONE), [])
        except csv.Error:
            yield number, [_UNCUT]


def _is_header(row: list[str], names: list[str]) -> bool:
    words = [cell for cell in row if cell]
    if not words or any(_number(cell) for cell in words):
        return False
    known = {name.strip() for name in names if name.strip()}
    return sum(word in known for word in words) >= _SAME * min(len(words), len(known))


def _close(found: Rows, shape: Shape, names: list[str], cells: list[list[str]], lines: list[int]) -> None:
    if not cells:
        return
    cells, said = short_rows.filled(cells, len(names))
    found.notes += said
    data = {}
    for name, column in zip(unique(names), zip(*cells, strict=True), strict=True):
        told = grouping_marks.with_points(column) if shape.decimal_comma else column
        data[name] = pl.Series([cell or None for cell in told], dtype=pl.String)
    found.frames.append(pl.DataFrame(data).with_columns(pl.Series(lines, dtype=pl.Int64).alias(LINE)))


def merged(found: Rows) -> pl.DataFrame:
    """All rows in one frame; of headers without end each may bring a column of its own."""
    if len(found.frames) <= _HEADERS:
        return pl.concat(found.frames, how="diagonal")
    named = (row for frame in found.frames for row in frame.iter_rows(named=True))
    rows = [{name: cell for name, cell in row.items() if cell is not None} for row in named]
    lines = [row.pop(LINE) for row in rows]
    names = flat.places(rows)
    left = rare.left_out({name: len(where) for name, where in names.items()}, len(rows), rare.MOST)
    found.notes += rare.note(left)
    for name in left:
        del names[name]
    return flat.to_frame(rows, lines, names)


def unique(names: list[str] | tuple[str, ...]) -> list[str]:
    """Names without repeats and without the name that is kept for line numbers."""
    seen: dict[str, int] = {LINE: 1}
    out = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        out.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return out


def _number(cell: str) -> bool:
    try:
        float(cell.replace(",", "."))
    except ValueError:
        return False
    return cell.lower() not in ("nan", "inf", "infinity", "-inf")
