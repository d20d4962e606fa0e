"""Clocks and durations as seconds."""

from __future__ import annotations

import re
from typing import Final

import polars as pl

from gdiag.ingesters import dates

_DAY: Final = 86_400.0
_LATE: Final = 3600.0
"""Seconds by which a late row may be behind those above it."""


def seconds(column: pl.Series, tz: str | None) -> pl.Series | None:
    """Clock texts or datetimes as Unix seconds, None when they are no clocks."""
    if column.dtype == pl.String:
        text = column.str.strip_chars()
        if text.cast(pl.Float64, strict=False).count() == text.count():
            return None
        parsed = _clock(text)
        if parsed is None:
            return None
        column = parsed
    elif column.dtype == pl.Date:
        column = column.cast(pl.Datetime("us"))
    elif not isinstance(column.dtype, pl.Datetime):
        return None
    if column.dtype == pl.Datetime and getattr(column.dtype, "time_zone", None) is None and tz is not None:
        column = _zoned(column, tz)
    return column.dt.epoch("us").cast(pl.Float64) / 1e6


def _zoned(column: pl.Series, tz: str) -> pl.Series:
    offset = re.fullmatch(r"([+-])(\d\d):?(\d\d)", tz)
    if offset:
        sign = 1 if offset.group(1) == "+" else -1
        return column.dt.offset_by(f"{-sign * (int(offset.group(2)) * 60 + int(offset.group(3)))}m")
    return column.dt.replace_time_zone(tz, ambiguous="earliest", non_existent="null").dt.convert_time_zone("UTC")


def _clock(text: pl.Series) -> pl.Series | None:
    """ISO 8601 and its cousins with `/` or a blank, with or without fraction and offset."""
    plain = text.str.replace(r"^\[|\]$", "").str.replace_all("/", "-").str.replace(r"([0-9])[T_]([0-9])", "$1 $2")
    plain = plain.str.replace(r",(\d+)", ".$1").str.replace(r"\s*(?:Z|UTC)$", "+00:00")
    for form in ("%Y-%m-%d %H:%M:%S%.f%:z", "%Y-%m-%d %H:%M:%S%.f%z"):
        aware = plain.str.to_datetime(form, strict=False, time_unit="us", time_zone="UTC")
        if aware.count() and aware.count() >= 0.5 * text.count():
            return aware
    unsaid = []
    for digits, usual in ((4, dates.LONG), (2, dates.SHORT)):
        days = plain.str.extract(rf"^(\d\d-\d\d-\d{{{digits}}}) \d").str.replace_all("-", "/", literal=True)
        if days.count():
            unsaid.append(dates.order(days, usual)[0].replace("/", "-") + " %H:%M:%S%.f")
    for form in (*unsaid, "%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%d %H:%M"):
        naive = plain.str.to_datetime(form, strict=False, time_unit="us")
        if naive.count() and naive.count() >= 0.5 * text.count():
            return naive
    return None


def durations(column: pl.Series) -> pl.Series:
    """`[N days, ]H:MM:SS`, MM:SS or `8h 8m 1s` as seconds; other text is left as it is."""
    clock = _added(column, r"^\s*(?:(\d+) days?,? ?)?(?:(\d+):)?(\d+):(\d+(?:\.\d+)?)\s*$")
    total = clock.fill_null(_added(column, r"^\s*(?:(\d+)d ?)?(?:(\d+)h ?)?(?:(\d+)m ?)?(?:(\d+(?:\.\d+)?)s)?\s*$"))
    return total.alias(column.name) if total.count() else column


def time_of_day(column: pl.Series) -> pl.Series | None:
    """`13:54:52` without a date as seconds since the first one, a day more wherever it falls back by more than an hour.

    Rows of several writers, or of a clock that is set, fall back by less: they have the latest time before them, so that the
    clock runs on. A jump ahead by nearly a day once midnight is past is such a late row, of the day before. None where it is
    no such clock.
    """
    told = column.str.contains(r"^\s*(?:[01]?\d|2[0-3]):[0-5]\d:[0-5]\d(?:[.,]\d+)?\s*$")
    if not told.any() or not told.drop_nulls().all():
        return None
    seconds = _added(column.str.replace(",", ".", literal=True), r"^\s*(\d+ days)?(\d+):(\d+):(\d+(?:\.\d+)?)\s*$")
    filled = seconds.forward_fill()
    change = filled.diff().fill_null(0.0)
    days = _days(change) if (change < -_LATE).any() else pl.zeros(change.len(), eager=True)
    since = seconds + _DAY * days - float(seconds.drop_nulls()[0])
    return since.cum_max().alias(column.name)


def _days(change: pl.Series) -> pl.Series:
    """Days that have passed at each row of a clock which begins again at midnight, from its changes [s]."""
    days, found = 0, []
    for moved in change.to_list():
        days += (moved < -_LATE) - (moved > _DAY - _LATE and days > 0)
        found.append(float(days))
    return pl.Series(found)


def _added(column: pl.Series, pattern: str) -> pl.Series:
    """Seconds of the pattern's days, hours, minutes and seconds; null where it finds none of them."""
    parts = column.str.extract_groups(pattern).struct.unnest().select(pl.all().cast(pl.Float64, strict=False))
    days, hours, minutes, seconds = (pl.col(name).fill_null(0.0) for name in parts.columns)
    total = days * 86400 + hours * 3600 + minutes * 60 + seconds
    return parts.select(pl.when(pl.any_horizontal(pl.all().is_not_null())).then(total)).to_series()


def unix(series: pl.Series) -> pl.Series:
    """Unix clocks in ms, µs or ns as seconds."""
    middle = series.drop_nulls().median()
    if not isinstance(middle, int | float):
        return series
    for limit, scale in ((1e17, 1e-9), (1e14, 1e-6), (1e11, 1e-3)):
        if middle > limit:
            return series * scale
    return series
