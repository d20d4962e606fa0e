"""Console lines that fit no layout, read one by one: cut ones, glued ones, and those that have other fields than their like."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Final

import polars as pl

from gdiag.ingesters.line_kinds import Kind, behind
from gdiag.ingesters.text import NUMBER
from gdiag.ingesters.tokens import pairs

_LAST: Final = re.compile(rf"{NUMBER}$")
OPEN: Final = tuple("0123456789.,eE+-")
"""Characters after which a number may go on."""


def read(
    table: pl.DataFrame, kind: Kind, known: list[str], end: str
) -> tuple[pl.DataFrame | None, pl.DataFrame, list[int], list[int]]:
    """Lines of no layout: rows of known names, lines without any, numbers of the lines that are cut and of those of several rows.

    A cut line lacks what closes its like, or its names are the first few of theirs: its last number is then not trusted.
    """
    marker, first = kind.marker, kind.first
    rows: list[dict[str, float | str]] = []
    left: list[tuple[int, str]] = []
    cut: list[int] = []
    several: list[int] = []
    names = set(known)
    prefixes = table["prefix"].to_list() if "prefix" in table.columns else [""] * len(table)
    for line, whole, prefix in zip(table["line"].to_list(), table["text"].to_list(), prefixes, strict=True):
        text = behind(whole, marker)
        found = pairs(text, kind.separator, first) if kind.begins.match(text) else []
        if _is_cut(text, found, known, end):
            cut.append(line)
            found = found[:-1] if text.rstrip()[-1:] in OPEN else found
        if known and twice([name for name, _ in found], known):
            several.append(line)
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
        return None, rest, cut, several
    types: dict[str, type[pl.DataType]] = {"line": pl.Int64, "prefix": pl.String}
    names_found = dict.fromkeys(name for row in rows for name in row)
    return pl.DataFrame(rows, schema={name: types.get(name, pl.Float64) for name in names_found}), rest, cut, several


def _is_cut(text: str, found: list[tuple[str, float]], known: list[str], end: str) -> bool:
    """Whether a line stops before its like do."""
    order = [name for name, _ in found]
    if len(order) < 2 or len(order) >= len(known):
        return False
    if end:
        return not text.rstrip().endswith(end)
    last = _LAST.search(text.rstrip())
    return order == known[: len(order)] and last is not None and float(last[0].replace(",", "")) == found[-1][1]


def twice(names: Sequence[str], known: Sequence[str]) -> bool:
    """Whether most of the known names stand there twice, the second time perhaps with a number behind."""
    count = Counter(name.removesuffix(" #2") for name in names)
    again = [name for name in dict.fromkeys(known) if count[name] > 1 and f"{name} #2" not in known]
    return len(again) > 0.5 * max(1, len(known) - 1)
