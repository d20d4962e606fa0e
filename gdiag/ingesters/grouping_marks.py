"""Numbers whose thousands are parted, or whose decimals begin with a comma: what a column as a whole says of how it is written."""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from itertools import zip_longest
from typing import Final, Literal

import polars as pl

_PARTED: Final = r"^[-+]?\d{1,3}(?:[ '’_\x{a0}\x{202f}]\d{3})+(?:[.,]\d+)?$"
_ENGLISH: Final = r"^[-+]?\d{1,3}(?:,\d{3})+(?:\.\d+)?$"
_DOTTED: Final = r"^[-+]?[1-9]\d{0,2}(?:\.\d{3})+$"
_COMMA: Final = r"^[-+]?(?:\d+|[1-9]\d{0,2}(?:\.\d{3})+),\d+(?:[eE][-+]?\d+)?$"
_POINT: Final = r"^[-+]?\d*\.\d+(?:[eE][-+]?\d+)?$"
_SHORT: Final = r"^[-+]?\d{1,3},\d{3}$"
_WHOLE: Final = r"^[-+]?\d{1,3}$"

_is_english = re.compile(r"^[-+]?[1-9]\d{0,2}(?:,\d{3})+$").match
_is_dotted = re.compile(_DOTTED).match
_is_comma = re.compile(_COMMA).match
_is_point = re.compile(_POINT).match

COUNTS: Final = ("step", "tokens", "samples")
"""Columns whose dots may part thousands."""
Dots = Literal["thousands", "unsaid", ""]
Commas = Literal["decimal", "unsaid", ""]


def commas_are_decimal(rows: Sequence[Sequence[str]], *, likely: bool, fractions: Container[int] = ()) -> bool:
    """Whether the cells of a table have decimal commas: a column can hold nothing else, and none has a decimal point.

    Args:
        rows: cells as they stand.
        likely: whether a comma before three digits, which may part thousands too, is enough.
        fractions: columns of losses and the like, in which dots without a comma are decimal points: 2.990.
    """
    proved = False
    for place, column in enumerate(zip_longest(*rows, fillvalue="")):
        cells = {cell.strip() for cell in column} - {""}
        with_comma = [cell for cell in cells if _is_comma(cell)]
        dotted = any(_is_dotted(cell) for cell in cells)
        if any(_is_point(cell) and not _is_dotted(cell) for cell in cells):
            return False
        if dotted and not with_comma and place in fractions:
            return False
        # One 0,5 among words is part of what they say.
        words = sum(not _is_comma(cell) and cell.lstrip("+-")[:1].isalpha() for cell in cells)
        if len(with_comma) > words:
            proved = proved or likely or any(not _is_english(cell) for cell in with_comma)
    return proved


def with_points(cells: Sequence[str]) -> list[str]:
    """A column of a table with decimal commas as programs read it: points for commas, no dots between thousands."""
    dotted = [cell for cell in cells if "." in cell]
    if any(not _is_dotted(cell) and not _is_comma(cell) for cell in dotted):
        return [cell.replace(",", ".") if _is_comma(cell) and "." not in cell else cell for cell in cells]
    return [cell.replace(".", "").replace(",", ".") if _is_comma(cell) or _is_dotted(cell) else cell for cell in cells]


def plain(text: pl.Series) -> pl.Series:
    """Numbers that the column writes with parted thousands or decimal commas; null for all else."""
    frame = pl.DataFrame({"t": text})
    t = pl.col("t")
    parted = pl.when(t.str.contains(_PARTED)).then(
        t.str.replace_all(r"[ '’_\x{a0}\x{202f}]", "").str.replace(",", ".", literal=True)
    )
    comma, english = t.str.contains(_COMMA), t.str.contains(_ENGLISH)
    proved, against = frame.select(
        (comma & (~english | t.str.contains(r"^[-+]?0"))).any().alias("proved"),
        (t.str.contains(_POINT) & ~t.str.contains(_DOTTED)).any().alias("against"),
    ).row(0)
    if proved and not against:
        point = t.str.replace_all(".", "", literal=True).str.replace(",", ".", literal=True)
        other = pl.when(comma | t.str.contains(_DOTTED)).then(point)
    else:
        other = pl.when(english).then(t.str.replace_all(",", "", literal=True))
    return frame.select(pl.coalesce(parted, other).cast(pl.Float64, strict=False)).to_series()


def short_commas(told: pl.Series) -> Commas:
    """What commas before three digits are in a column of losses that has them in every number.

    2,345 among them is taken for a decimal comma; of 12,345 alone nothing can be said.

    Args:
        told: the numbers as text, without what stands for none.
    """
    if not told.len() or not told.str.contains(_SHORT).all():
        return ""
    return "decimal" if told.str.contains(r"^[-+]?\d,").any() else "unsaid"


def dots(text: pl.Series) -> Dots:
    """What the dots in a column of counts are: 1.000 may be one, written with three decimals, or a thousand.

    Two dots in a number are proof, and so is a count that falls back less often if they part thousands: 998, 999, 1.000 does
    not, and a resume is one fall in both readings. Words and damaged cells among the numbers prove nothing.
    """
    told = text.drop_nulls().str.strip_chars()
    dotted, number = told.str.contains(_DOTTED), told.cast(pl.Float64, strict=False)
    here = dotted | number.is_finite().fill_null(False)
    told, dotted, number = told.filter(here), dotted.filter(here), number.filter(here)
    if not dotted.any() or not (dotted | told.str.contains(_WHOLE)).all():
        return ""
    if told.str.contains(r"\..*\.").any():
        return "thousands"
    count = without_dots(told).cast(pl.Float64, strict=False)
    falls, others = (int((values.diff() < 0).sum()) for values in (count, number))
    if falls < others or (falls == others and _passes_a_thousand(count, number)):
        return "thousands"
    return "unsaid" if dotted.all() else ""


def _passes_a_thousand(count: pl.Series, number: pl.Series) -> bool:
    """Whether a count goes on past a thousand by what it advances elsewhere, where the numbers as they stand fall back."""
    ahead = count.diff()
    usual = ahead.filter(ahead > 0).median()
    past = (number.diff() < 0) & (ahead > 0)
    return isinstance(usual, float) and bool(past.any()) and bool((ahead.filter(past) <= 2 * usual).all())


def falls_below_a_thousand(count: pl.Series) -> bool:
    """Whether a column read as numbers falls back, holds fractions and never comes to a thousand: 999 and then 1.000."""
    top = count.max()
    return isinstance(top, float) and top < 1000 and bool((count != count.round()).any()) and not count.is_sorted()


def without_dots(text: pl.Series) -> pl.Series:
    """The text of numbers whose dots part thousands as programs read it."""
    return text.str.replace_all(".", "", literal=True)
