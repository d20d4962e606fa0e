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
_FEW: Final = 8
"""Lines of a further kind."""
SAMPLES: Final = 32
"""Lines that a layout is learnt from."""
SHAPE: Final = r"[\s:=#\[]*\d"
"""A number behind the word that introduces it."""


@dataclass(frozen=True, slots=True)
class Kind:
    """What step lines look like."""

    separator: str | None
    """Literal between fields (' | '), or None when labels alone tell fields apart."""
    marker: str
    """The word that introduces the step number; every text has it. '' when the texts start behind it."""
    first: Sequence[str]
    """Names of the first numbers, where their labels do not name them."""
    begins: re.Pattern[str]
    """What stands behind the marker; other lines are left."""
    needs: Sequence[str]
    """Literals of every line that is worth a look of its own."""
    skip: Sequence[str]
    """Names of numbers that nobody wants."""


@dataclass(frozen=True, slots=True)
class Begun:
    """Lines that were read before they became text."""

    layout: Layout
    alike: pl.DataFrame
    """Two rows or more of that layout, as in Fields.wide."""
    head: list[str]
    """The first step lines of all."""
    last: str
    """The last step line of all."""


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


def kind_of(
    separator: str | None = None,
    *,
    marker: str = "",
    first: Sequence[str] = ("step",),
    shape: str = SHAPE,
    needs: Sequence[str] = (),
    skip: Sequence[str] = (),
) -> Kind:
    """Step lines as `read` takes them."""
    return Kind(separator, marker, first, re.compile(shape), needs, skip)


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
        separator: as in Kind, like the other arguments that it names.
        marker: as there.
        ends: whether the file's last line ended with a newline; else its last number may be cut.
        first: as there.
        shape: the regular expression of Kind.begins.
        needs: as there.
        skip: as there.
    """
    kind = kind_of(separator, marker=marker, first=first, shape=shape, needs=needs, skip=skip)
    return read_on(table, kind, None, ends=ends)


def read_on(table: pl.DataFrame, kind: Kind, begun: Begun | None, *, ends: bool) -> Fields:
    """As read, of the lines that are left where some are read already."""
    again = bool((table["line"].diff() == 0).any())
    if again:  # what a bar redraws has one line number: rows are told apart by their own
        table, lines = table.with_columns(pl.int_range(pl.len(), dtype=pl.Int64).alias("line")), table["line"]
    fields = _read(table, kind, begun)
    fields = fields if ends else _distrust_last(fields, table)
    return _numbered(fields, lines) if again else fields


def _numbered(fields: Fields, lines: pl.Series) -> Fields:
    """Rows with the line numbers at their places."""
    wide, left = (frame.with_columns(lines.gather(frame["line"]).alias("line")) for frame in (fields.wide, fields.left))
    return Fields(wide, left, lines.gather(fields.cut).to_list(), lines.gather(fields.odd).to_list())


def learn(texts: Sequence[str], kind: Kind) -> Layout | None:
    """The layout of the first of some lines, None where it is no step line."""
    samples = [_behind(text, kind.marker) for text in texts]
    if not kind.begins.match(samples[0]) or not all(word in texts[0] for word in kind.needs):
        return None
    layout = layouts.learn(samples, kind.separator, kind.first, kind.skip)
    if layout is None or not kind.marker:
        return layout
    return replace(
        layout,
        bare=all(text.startswith(kind.marker) for text in texts),
        late=any((layout.separator or " ") in text.split(kind.marker, 1)[0] for text in texts),
    )


def _read(table: pl.DataFrame, kind: Kind, begun: Begun | None) -> Fields:
    parts: list[pl.DataFrame] = []
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
        misses = 0
        got, rest = found
        main = main or layout
        whole = layout.names == main.names[: len(layout.names)]  # else it is a line of another kind, and whole
        if main.end and not layout.end and whole and layout.names[-1:] and layout.pieces[-1]:
            cut.extend(got["line"].to_list())
            got = got.drop(layout.names[-1])
        parts.append(got)
    if kind.needs:
        rest = rest.filter(pl.all_horizontal(*(pl.col("text").str.contains(word, literal=True) for word in kind.needs)))
    known = max((names_of(part) for part in parts), key=len, default=[])
    slow, left, short = _one_by_one(rest, kind, known, main.end if main else "")
    if slow is not None:
        parts.append(slow)
    wide = pl.concat(parts, how="diagonal") if parts else _none(kind.first)
    if not wide["line"].is_sorted():
        wide = wide.sort("line", maintain_order=True)
    return Fields(wide, left, sorted(cut + short), rest["line"].to_list())


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


def begins(text: str, kind: Kind) -> bool:
    """Whether a text begins as step lines do behind their marker."""
    return kind.begins.match(_behind(text, kind.marker)) is not None


def _behind(text: str, marker: str) -> str:
    return text.split(marker, 1)[-1] if marker else text


def _none(first: Sequence[str]) -> pl.DataFrame:
    return pl.DataFrame(schema={"line": pl.Int64, **dict.fromkeys(first, pl.Float64)})


def _one_by_one(
    table: pl.DataFrame, kind: Kind, known: list[str], end: str
) -> tuple[pl.DataFrame | None, pl.DataFrame, list[int]]:
    """Lines of no layout: rows of known names, lines without any, numbers of the lines that are cut.

    A cut line lacks what closes its like, or its names are the first few of theirs: its last number is then not trusted.
    """
    marker, first = kind.marker, kind.first
    rows: list[dict[str, float | str]] = []
    left: list[tuple[int, str]] = []
    cut: list[int] = []
    names = set(known)
    prefixes = table["prefix"].to_list() if "prefix" in table.columns else [""] * len(table)
    for line, whole, prefix in zip(table["line"].to_list(), table["text"].to_list(), prefixes, strict=True):
        text = _behind(whole, marker)
        found = pairs(text, kind.separator, first) if kind.begins.match(text) else []
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
