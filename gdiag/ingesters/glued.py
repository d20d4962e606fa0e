"""Lines that hold several records, because the newline between them is lost: several ranks wrote at once, a pager or a mail joined them.

A record begins at each start of a step line behind which stands what stands behind the first one of other lines, or a name that was
already said since the start before. What a launcher or logger prints before a record goes with it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import polars as pl

from gdiag.ingesters import tokens
from gdiag.ingesters.text import LAUNCHER

_MOST: Final = 20_000
"""Lines with several starts that are all looked at; of more some are, to tell whether that is how the program prints."""
_SOME: Final = 200
_HEAD: Final = 32
_LOOK: Final = 400
"""Characters before a start that may be a prefix, and behind it that hold the first name."""
_BEFORE: Final = re.compile(
    rf"(?:(?<![\w.,%])|(?=\[))(?P<launcher>(?:{LAUNCHER}\s*:?\s*)*)(?P<words>(?:(?!(?:nan|inf)\b)[A-Za-z]+[ \t]+)*)$",
    re.I,
)
_CLOSED: Final = re.compile(r"\d\S{0,12}[\s|,;)\]}'\"-]*$")
"""What ends with a number and its unit."""


@dataclass(frozen=True, slots=True)
class Starts:
    """How the records of one kind of line begin."""

    pattern: str
    """Regular expression of a start, up to the step or further, without look-around."""
    separator: str | None
    """Literal between fields."""
    first: Sequence[str]
    """Names of the first numbers behind the start, which have none of their own."""
    loose: bool = False
    """Whether the pattern may stand inside a record: what stands before it must then be the end of another."""


def apart(table: pl.DataFrame, starts: Starts, marker: str, head: Sequence[str] = ()) -> pl.DataFrame:
    """The lines with those of several records cut apart: rows of the same line number.

    Args:
        table: `line`, `text` and whatever else.
        starts: how a record begins.
        marker: a literal of every start.
        head: the first lines of the kind, which tell the name behind a start; those of the table where none are given.
    """
    if not len(table):
        return table
    several = pl.col("text").str.count_matches(marker, literal=True) > 1
    rows = table.select(pl.arg_where(several)).to_series()
    if not len(rows):
        return table
    text = table["text"].gather(rows)
    counts = text.str.count_matches(starts.pattern)
    rows, text, counts = (series.filter(counts > 1) for series in (rows, text, counts))
    if not len(rows):
        return table
    known = names_behind(head or table["text"].head(_HEAD).to_list(), starts)
    if len(rows) > _MOST and not any(
        len(cut(line, starts, known)) > 1 for line in text.gather_every(len(text) // _SOME)
    ):
        usual = counts.median() or 1
        rows, text = (series.filter(counts > usual) for series in (rows, text))
    found = [(row, parts) for row, line in zip(rows, text, strict=True) if len(parts := cut(line, starts, known)) > 1]
    if not found:
        return table
    records = pl.DataFrame(found, schema={"row": pl.Int64, "parts": pl.List(pl.String)}, orient="row")
    whole = table.with_columns(pl.int_range(pl.len(), dtype=pl.Int64).alias("row"))
    whole = whole.join(records, on="row", how="left", maintain_order="left")
    whole = whole.with_columns(pl.coalesce("parts", pl.concat_list("text")).alias("text"))
    return whole.drop("row", "parts").explode("text")


def parts(texts: Sequence[str], starts: Starts) -> Sequence[str]:
    """The records of some lines."""
    begins = re.compile(starts.pattern)
    if all(len(begins.findall(text)) < 2 for text in texts):
        return texts
    known = names_behind(texts, starts)
    return [part for text in texts for part in cut(text, starts, known)]


def names_behind(head: Sequence[str], starts: Starts) -> frozenset[str]:
    """The first names behind the start in lines that have one."""
    begins = re.compile(starts.pattern)
    found = (_names(text[match.start() :], starts) for text in head if (match := begins.search(text)))
    return frozenset(names[0] for names in found if names)


def cut(text: str, starts: Starts, known: frozenset[str]) -> list[str]:
    """The records of a line; one where it is no glued one."""
    places = [match.start() for match in re.finditer(starts.pattern, text) if not _in_number(text, match.start())]
    cuts: list[int] = []
    own = _own(text[: places[0]]) if places else ()
    begin = places[0] if places else 0
    for at, end in zip(places[1:], [*places[2:], len(text)], strict=False):
        names = _names(text[at:end], starts)
        again = bool(names) and (names[0] in known or not {*names}.isdisjoint(_names(text[begin:at], starts)))
        place = _boundary(text, begin, at, own, loose=starts.loose) if again else None
        if place is not None:
            cuts.append(place)
            begin = at
    return [text[i:j] for i, j in zip([0, *cuts], [*cuts, len(text)], strict=True)]


def _in_number(text: str, at: int) -> bool:
    """Whether digits that a start begins with may belong to the number before it."""
    return text[at].isdigit() and text[max(0, at - 1) : at] in {*"0123456789."}


def _names(text: str, starts: Starts) -> list[str]:
    """Names of the numbers behind a start."""
    found = tokens.pairs(re.sub(r"^[^\d]*", "", text[: 10 * _LOOK], count=1), starts.separator, starts.first)
    return [name for name, _ in found[len(starts.first) :]]


def _own(prefix: str) -> tuple[re.Pattern[str], ...]:
    """What stands before the first record of a line, with other digits: as many of them, else any number."""
    if not prefix.strip() or len(prefix) > _LOOK:
        return ()
    parts = re.split(r"(\d+)", re.escape(prefix.lstrip()))
    ways = (
        (rf"\d{{{len(part)}}}" if part.isdigit() else part for part in parts),
        (r"\d+" if part.isdigit() else part for part in parts),
    )
    return tuple(re.compile("".join(way) + "$") for way in ways)


def _boundary(text: str, begin: int, at: int, own: Sequence[re.Pattern[str]], *, loose: bool) -> int | None:
    """Where the record begins whose start stands `at`: before its prefix. None where no other one ends there."""
    before = text[max(begin, at - _LOOK) : at]
    if (match := next((match for way in own if (match := way.search(before))), None)) is not None:
        return at - len(match[0])
    found = _BEFORE.search(before)
    if found is None:
        return None if loose else at
    if loose and (found["words"] or not _CLOSED.search(before[: found.start()])):
        return None
    return at - len(found[0])
