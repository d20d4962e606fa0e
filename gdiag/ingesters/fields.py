"""Regular console lines (a step, then `key separator number` again and again) read by column instead of by line.

Lines of one program are alike: the same labels in the same places around other numbers. A layout is learnt from one line,
tried on all lines at once, and kept for those that fit. What fits no layout (cut, glued or rare lines) is read one by
one. Splitting at literals is several times faster than a regular expression with a group for every number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import polars as pl

from gdiag.ingesters import glued, layouts, line_forms, odd_lines
from gdiag.ingesters.layouts import Layout
from gdiag.ingesters.line_kinds import SAMPLES, SHAPE, Begun, Kind, kind_of, learn
from gdiag.ingesters.tokens import pairs

_LAYOUTS: Final = 16
_FEW: Final = 8
"""Lines of a further kind."""
_PARTS: Final = 1 << 21
"""Rows of one line at most; a part has one character at least."""
_OWN_LINE: Final = pl.col("line") * _PARTS


@dataclass(slots=True)
class Fields:
    """What regular lines gave."""

    wide: pl.DataFrame
    """`line`, `prefix` where a marker cuts it off, `step` and a Float64 column per label; times in s and sizes in B where
    the unit stands behind the number."""
    left: pl.DataFrame
    """`line`, `text` of the lines in which no step with a value was found."""
    cut: list[int] = field(default_factory=list)
    """Line numbers of lines that end early: their last field is not used."""
    odd: list[int] = field(default_factory=list)
    """Line numbers of lines that fit no layout and were read one by one."""
    several: list[int] = field(default_factory=list)
    """Line numbers of lines that say most names twice and cannot be cut apart: the first numbers are used."""


def read(
    table: pl.DataFrame,
    separator: str | None = None,
    *,
    marker: str = "",
    ends: bool = True,
    first: Sequence[str] = ("step",),
    shape: str = SHAPE,
    needs: Sequence[str] = (),
    skip: Sequence[str] = (),
    loose: bool = False,
) -> Fields:
    """Read lines of one kind, or of a few.

    Args:
        table: `line`, `text` and perhaps `prefix`.
        separator: as in Kind, like the other arguments that it names.
        marker: as there.
        ends: whether the file's last line ended with a newline; else its last number may be cut.
        first: as there.
        shape: the regular expression of Kind.begins.
        needs: as there.
        skip: as there.
        loose: as there.
    """
    kind = kind_of(separator, marker=marker, first=first, shape=shape, needs=needs, skip=skip, loose=loose)
    return read_on(table, kind, None, ends=ends)


def read_on(table: pl.DataFrame, kind: Kind, begun: Begun | None, *, ends: bool) -> Fields:
    """As read, of the lines that are left where some are read already."""
    if kind.marker:
        table = glued.apart(table, kind.starts, kind.marker, begun.head if begun else ())
    again = bool((table["line"].diff() == 0).any())
    if again:  # what is glued or a bar redraws has one line number: rows are told apart by their place in the line
        table = table.with_columns(_OWN_LINE + pl.int_range(pl.len(), dtype=pl.Int64).over("line"))
        begun = begun and replace(begun, alike=begun.alike.with_columns(_OWN_LINE))
    fields = _read(table, kind, begun)
    fields = fields if ends else _distrust_last(fields, table)
    return _numbered(fields) if again else fields


def _numbered(fields: Fields) -> Fields:
    """Rows with the numbers of their lines."""
    wide, left = (frame.with_columns(pl.col("line") // _PARTS) for frame in (fields.wide, fields.left))
    numbers = ([n // _PARTS for n in lines] for lines in (fields.cut, fields.odd, fields.several))
    return Fields(wide, left, *numbers)


def _read(table: pl.DataFrame, kind: Kind, begun: Begun | None) -> Fields:
    parts: list[pl.DataFrame] = []
    bare: list[pl.DataFrame] = []
    main: Layout | None = None
    cut: list[int] = []
    rest = table
    misses = 0
    while (len(rest) or begun is not None) and len(parts) < _LAYOUTS and misses < 4:
        if begun is not None:
            layout: Layout | None = begun.layout
        else:
            layout = learn(rest["text"].slice((len(rest) * misses) // 4, SAMPLES).to_list(), kind)
        found = _fitting(rest, layout, kind.marker, begun) if layout is not None else None
        begun = None
        if layout is None or found is None or not len(found[0]) or (len(found[0]) == 1 and (parts or len(rest) > 8)):
            misses += 1
            continue
        if main is not None and len(found[0]) < _FEW and _stops_early(layout, main):
            misses += 1  # they may be cut, which is seen line by line
            continue
        if main is not None and odd_lines.twice(layout.names, main.names):
            misses += 1  # several lines run together
            continue
        misses = 0
        before, (got, rest) = rest, found
        main = main or layout
        whole = layout.names == main.names[: len(layout.names)]  # else it is a line of another kind, and whole
        if main.end and not layout.end and whole and layout.names[-1:] and layout.pieces[-1]:
            cut.extend(got["line"].to_list())
            got = got.drop(layout.names[-1])
            if len(layout.names) <= len(kind.first) + 1:  # nothing is left but the step
                bare.append(before.join(got.select("line"), on="line", how="semi", maintain_order="left"))
                continue
        parts.append(got)
    if kind.needs:
        rest = rest.filter(pl.all_horizontal(*(pl.col("text").str.contains(word, literal=True) for word in kind.needs)))
    known = max((names_of(part) for part in parts), key=len, default=[])
    slow, left, short, several = odd_lines.read(rest, kind, known, main.end if main else "")
    left = pl.concat([left, *(_without_marker(lines, kind.marker) for lines in bare)]).sort("line", maintain_order=True)
    if slow is not None:
        parts.append(slow)
    wide = pl.concat(parts, how="diagonal") if parts else _none(kind.first)
    if not wide["line"].is_sorted():
        wide = wide.sort("line", maintain_order=True)
    return Fields(wide, left, sorted(cut + short), rest["line"].to_list(), several)


def _without_marker(lines: pl.DataFrame, marker: str) -> pl.DataFrame:
    """`line` and the text behind the marker."""
    text = pl.col("text").str.splitn(marker, 2).struct.field("field_1") if marker else pl.col("text")
    return lines.select("line", text.alias("text"))


def _stops_early(layout: Layout, main: Layout) -> bool:
    """Whether lines of a layout have the first names of the main one's, and nothing closes either."""
    return not main.end and layout.names == main.names[: len(layout.names)] and len(layout.names) < len(main.names)


def _fitting(
    table: pl.DataFrame, layout: Layout, marker: str, begun: Begun | None
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Rows that fit the layout and the lines that do not: what is alike to the byte first, then what is split at literals.

    Rows that were read already come first.
    """
    alike, rest = line_forms.apply(table, layout, marker) if len(table) else (None, table)
    rows = [rows for rows in (begun.alike if begun else None, alike) if rows is not None]
    if rows and not layouts.may_fit(rest, layout):
        return pl.concat(rows), rest
    split, rest = layouts.apply(rest, layout, marker)
    return pl.concat([*rows, split.select(rows[0].columns)]) if rows else split, rest


def names_of(wide: pl.DataFrame) -> list[str]:
    """Its columns of numbers."""
    return [name for name in wide.columns if name not in ("line", "prefix")]


def _none(first: Sequence[str]) -> pl.DataFrame:
    return pl.DataFrame(schema={"line": pl.Int64, **dict.fromkeys(first, pl.Float64)})


def _distrust_last(fields: Fields, table: pl.DataFrame) -> Fields:
    """Drop the last number of a file that ends in mid-line when it is shorter than that of the line before."""
    if len(table) < 2 or not len(fields.wide) or fields.wide["line"][-1] != table["line"][-1]:
        return fields
    now, before = table["text"][-1], table["text"][-2]
    found = pairs(now, None, ("step",))
    if not found or not now.rstrip().endswith(odd_lines.OPEN) or len(now.rstrip()) >= len(before.rstrip()):
        return fields
    name = found[-1][0]
    if name not in fields.wide.columns:
        return fields
    end = fields.wide["line"][-1]
    fields.wide = fields.wide.with_columns(
        pl.when(pl.col("line") == end).then(None).otherwise(pl.col(name)).alias(name)
    )
    fields.cut.append(end)
    return fields
