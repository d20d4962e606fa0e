"""Dates that do not say which of their numbers is the day: `11/10/25` is in October 2011, in October or in November 2025.

All dates of a file decide together: each has to be one, in years that logs are of, and they go on without jumps. Where several
orders fit alike, the month is taken to come first, as Python's logging configurations and Rich print it; Spark begins with the year.
"""

from __future__ import annotations

from typing import Final

import polars as pl

SHORT: Final = "%m/%d/%y"
LONG: Final = "%m/%d/%Y"
_ORDERS: Final = {SHORT: (SHORT, "%y/%m/%d", "%d/%m/%y"), LONG: (LONG, "%d/%m/%Y")}
"""The usual form first."""
_YEARS: Final = (2000, 2040)
"""Years that logs are of."""
_LATELY: Final = 2015
"""The year from which most logs are."""
_MOST: Final = 20_000
"""Changes of the date that are looked at."""
_DAY: Final = r"(?:^|[^\d/.:-])(\d\d[/-]\d\d[/-](?:\d{4}|\d\d))[ T]\d\d:\d\d"
_SAID: Final = r"\d{4}[-/]\d\d[-/]\d\d"
_WORDS: Final = {"m": "month", "d": "day", "y": "year"}


def order(days: pl.Series, usual: str) -> tuple[str, bool]:
    """The form of dates, and whether another one that gives other dates fits as well.

    Args:
        days: texts such as 11/10/25, in the order of the file; null where there is none.
        usual: SHORT or LONG, by the digits of the year.
    """
    told = days.drop_nulls()
    told = told.filter((told != told.shift()).fill_null(True)).head(_MOST)
    if not len(told):
        return usual, False
    found = [(form, told.str.to_date(form, strict=False)) for form in _ORDERS[usual]]
    ranks = [_doubts(dates) for _, dates in found]
    best = ranks.index(min(ranks))
    alike = [dates for (_, dates), rank in zip(found, ranks, strict=True) if rank == ranks[best]]
    return found[best][0], any(not dates.equals(alike[0]) for dates in alike[1:])


def note(texts: pl.Series) -> tuple[str, ...]:
    """A sentence where nothing in texts with clocks tells the order of their dates."""
    days = (
        texts.filter(~texts.str.contains(_SAID)).str.extract(_DAY).str.replace_all("-", "/", literal=True).drop_nulls()
    )
    long = days.str.len_bytes() > len("11/10/25")
    for some, usual in ((days.filter(~long), SHORT), (days.filter(long), LONG)):
        form, doubtful = order(some, usual)
        if doubtful:
            return (f"whether dates such as {some[0]} begin with {_first(form)} cannot be judged: they are read so",)
    return ()


def _first(form: str) -> str:
    return f"the {_WORDS[form[1]]}"


def _doubts(dates: pl.Series) -> tuple[int, int, int, int, int]:
    """What speaks against a form, the strongest first: no dates, impossible years, days that go back, jumps [days], long ago."""
    year, moved = dates.dt.year(), dates.drop_nulls().diff().dt.total_days().drop_nulls()
    return (
        dates.null_count(),
        int((~year.is_between(*_YEARS)).sum()),
        int((moved < 0).sum()),
        int(moved.abs().sum()),
        int((year < _LATELY).sum()),
    )
