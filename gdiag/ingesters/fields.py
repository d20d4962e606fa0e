"""Regular console lines (a step, then `key separator number` again and again) read by column instead of by line.

Lines of one program are alike: the same labels in the same places around other numbers. A layout is learnt from one line,
tried on all lines at once, and kept for those that fit. What fits no layout (cut, glued or rare lines) is read one by
one. Splitting at literals is several times faster than a regular expression with a group for every number.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import polars as pl

from gdiag.ingesters import layouts, line_forms
from gdiag.ingesters.layouts import Layout
from gdiag.ingesters.text import NUMBER
from gdiag.ingesters.tokens import pairs

_LAST: Final = re.compile(rf"{NUMBER}$")
_OPEN: Final = tuple("0123456789.,eE+-")
"""Characters after which a number may go on."""
_LAYOUTS: Final = 16
SHAPE: Final = r"[\s:=#\[]*\d"
"""A number behind the word that introduces it."""


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
) -> Fields:
    """Read lines of one kind, or of a few.

    Args:
        table: `line`, `text` and perhaps `prefix`.
        separator: literal between fields (' | '), or None when labels alone tell fields apart.
        marker: the word that introduces the step number; every text has it. '' when the texts start behind it.
        ends: whether the file's last line ended with a newline; else its last number may be cut.
        first: names of the first numbers, where their labels do not name them.
        shape: what stands behind the marker; other lines are left.
        needs: literals of every line that is worth a look of its own.
        skip: names of numbers that nobody wants.
    """
    again = bool((table["line"].diff() == 0).any())
    if again:  # what a bar redraws has one line number: rows are told apart by their own
        table, lines = table.with_columns(pl.int_range(pl.len(), dtype=pl.Int64).alias("line")), table["line"]
    fields = _read(table, separator, marker, first, re.compile(shape), needs, skip)
    fields = fields if ends else _distrust_last(fields, table)
    return _numbered(fields, lines) if again else fields


def _numbered(fields: Fields, lines: pl.Series) -> Fields:
    """Rows with the line numbers at their places."""
    wide, left = (frame.with_columns(lines.gather(frame["line"]).alias("line")) for frame in (fields.wide, fields.left))
    return Fields(wide, left, lines.gather(fields.cut).to_list(), lines.gather(fields.odd).to_list())


def _read(
    table: pl.DataFrame,
    separator: str | None,
    marker: str,
    first: Sequence[str],
    begins: re.Pattern[str],
    needs: Sequence[str],
    skip: Sequence[str],
) -> Fields:
    parts: list[pl.DataFrame] = []
    main: Layout | None = None
    cut: list[int] = []
    rest = table
    misses = 0
    while len(rest) and len(parts) < _LAYOUTS and misses < 4:
        texts = rest["text"].slice((len(rest) * misses) // 4, 32).to_list()
        samples = [_behind(text, marker) for text in texts]
        likely = begins.match(samples[0]) and all(word in texts[0] for word in needs)
        layout = layouts.learn(samples, separator, first, skip) if likely else None
        if layout is not None and marker:
            layout = replace(
                layout,
                bare=all(text.startswith(marker) for text in texts),
                late=any((layout.separator or " ") in text.split(marker, 1)[0] for text in texts),
            )
        found = _fitting(rest, layout, marker) if layout is not None else None
        if layout is None or found is None or not len(found[0]) or (len(found[0]) == 1 and (parts or len(rest) > 8)):
            misses += 1
            continue
        misses = 0
        got, rest = found
        main = main or layout
        begun = layout.names == main.names[: len(layout.names)]  # else it is a line of another kind, and whole
        if main.end and not layout.end and begun and layout.names[-1:] and layout.pieces[-1]:
            cut.extend(got["line"].to_list())
            got = got.drop(layout.names[-1])
        parts.append(got)
    if needs:
        rest = rest.filter(pl.all_horizontal(*(pl.col("text").str.contains(word, literal=True) for word in needs)))
    known = max((names_of(part) for part in parts), key=len, default=[])
    slow, left, short = _one_by_one(rest, separator, marker, first, known, main.end if main else "", begins)
    if slow is not None:
        parts.append(slow)
    wide = pl.concat(parts, how="diagonal").sort("line", maintain_order=True) if parts else _none(first)
    return Fields(wide, left, sorted(cut + short), rest["line"].to_list())


def _fitting(table: pl.DataFrame, layout: Layout, marker: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Rows that fit the layout and the lines that do not: what is alike to the byte first, then what is split at literals."""
    alike, rest = line_forms.apply(table, layout, marker)
    if alike is not None and not len(rest):
        return alike, rest
    split, rest = layouts.apply(rest, layout, marker)
    return split if alike is None else pl.concat([alike, split.select(alike.columns)]), rest


def names_of(wide: pl.DataFrame) -> list[str]:
    """Its columns of numbers."""
    return [name for name in wide.columns if name not in ("line", "prefix")]


def _behind(text: str, marker: str) -> str:
    return text.split(marker, 1)[-1] if marker else text


def _none(first: Sequence[str]) -> pl.DataFrame:
    return pl.DataFrame(schema={"line": pl.Int64, **dict.fromkeys(first, pl.Float64)})


def _one_by_one(
    table: pl.DataFrame,
    separator: str | None,
    marker: str,
    first: Sequence[str],
    known: list[str],
    end: str,
    begins: re.Pattern[str],
) -> tuple[pl.DataFrame | None, pl.DataFrame, list[int]]:
    """Lines of no layout: rows of known names, lines without any, numbers of the lines that are cut.

    A cut line lacks what closes its like, or its names are the first few of theirs: its last number is then not trusted.
    """
    rows: list[dict[str, float | str]] = []
    left: list[tuple[int, str]] = []
    cut: list[int] = []
    names = set(known)
    prefixes = table["prefix"].to_list() if "prefix" in table.columns else [""] * len(table)
    for line, whole, prefix in zip(table["line"].to_list(), table["text"].to_list(), prefixes, strict=True):
        text = _behind(whole, marker)
        found = pairs(text, separator, first) if begins.match(text) else []
        if _is_cut(text, found, known, end):
            cut.append(line)
            found = found[:-1] if text.rstrip()[-1:] in _OPEN else found
        row: dict[str, float | str] = {}
        for name, value in found:
            if name in first or not names or name in names:
                row.setdefault(name, value)
        if len(row) > len(first) and all(name in row for name in first):
            begin = whole.split(marker, 1)[0] if marker else prefix
            rows.append({"line": line, **({"prefix": begin} if marker or "prefix" in table.columns else {}), **row})
        else:
            left.append((line, text))
    rest = pl.DataFrame(left, schema={"line": pl.Int64, "text": pl.String}, orient="row")
    if not rows:
        return None, rest, cut
    types: dict[str, type[pl.DataType]] = {"line": pl.Int64, "prefix": pl.String}
    names_found = dict.fromkeys(name for row in rows for name in row)
    return pl.DataFrame(rows, schema={name: types.get(name, pl.Float64) for name in names_found}), rest, cut


def _is_cut(text: str, found: list[tuple[str, float]], known: list[str], end: str) -> bool:
    """Whether a line stops before its like do."""
    order = [name for name, _ in found]
    if len(order) < 2 or len(order) >= len(known):
        return False
    if end:
        return not text.rstrip().endswith(end)
    last = _LAST.search(text.rstrip())
    return order == known[: len(order)] and last is not None and float(last[0].replace(",", "")) == found[-1][1]


def _distrust_last(fields: Fields, table: pl.DataFrame) -> Fields:
    """Drop the last number of a file that ends in mid-line when it is shorter than that of the line before."""
    if len(table) < 2 or not len(fields.wide) or fields.wide["line"][-1] != table["line"][-1]:
        return fields
    now, before = table["text"][-1], table["text"][-2]
    found = pairs(now, None, ("step",))
    if not found or not now.rstrip().endswith(_OPEN) or len(now.rstrip()) >= len(before.rstrip()):
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
