"""Cells → Float64 in the canonical unit; what is no number is told apart from what was not logged."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

import polars as pl
import polars.selectors as cs

from gdiag.ingesters.aliases import Claim

_ABSENT: Final = ("", "null", "none", "n/a", "na", "-", "--", "<na>", "not logged")
_SPECIAL: Final = {
    "nan": float("nan"), "+nan": float("nan"), "-nan": float("nan"), "inf": float("inf"), "+inf": float("inf"),
    "-inf": float("-inf"), "infinity": float("inf"), "+infinity": float("inf"), "-infinity": float("-inf"),
    "true": 1.0, "false": 0.0, "1.#qnan": float("nan"), "1.#inf": float("inf"), "-1.#inf": float("-inf"),
}  # fmt: skip
_OVERFLOW: Final = 1.7976931348623157e308
"""The largest double: how SQL stores and jq write an infinity."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """A column as numbers."""

    series: pl.Series
    bad: pl.Series | None = None
    """Mask of the cells that are no number."""
    notes: tuple[str, ...] = ()


def read(column: pl.Series, canonical: str, found: Claim, tz: str | None) -> Parsed:
    """A column in the unit of `canonical`, Float64, null where nothing was logged."""
    if canonical == "time" and (column.dtype == pl.String or column.dtype.is_temporal()):
        clock = clock_seconds(column, tz)
        if clock is not None:
            return Parsed(clock)
    if canonical == "elapsed" and column.dtype == pl.String:
        column = _durations(column)
    parsed = numbers(column)
    series, notes = parsed.series, list(parsed.notes)
    if found.scale is not None and found.scale != 1.0:
        series = series * found.scale
    if canonical == "time":
        series = _unix(series)
    elif canonical == "memory" and found.scale is None:
        series = _bytes(series)
    if found.turn == "inverse":
        series = pl.select(pl.when(series > 0).then(1.0 / series).when(series.is_nan()).then(series)).to_series()
        notes.append(f"{canonical} is 1 / {escape(column.name, 60)}")
    elif found.turn == "root":
        series = series.sqrt()
        notes.append(f"{canonical} is the square root of {escape(column.name, 60)}")
    elif found.turn == "count":
        series = _flags(series)
    return Parsed(series, parsed.bad, tuple(notes))


def numbers(column: pl.Series) -> Parsed:
    """Any column as Float64; text is read as a number where it is one."""
    if column.dtype != pl.String:
        return Parsed(column if column.dtype == pl.Float64 else column.cast(pl.Float64, strict=False))
    text = column.str.strip_chars().str.strip_chars("'\"")
    series = text.cast(pl.Float64, strict=False)
    left = series.is_null() & text.is_not_null()
    if not left.any():
        return Parsed(series)
    lower = text.str.to_lowercase()
    special = lower.replace_strict(list(_SPECIAL), list(_SPECIAL.values()), default=None, return_dtype=pl.Float64)
    thousands = pl.select(
        pl.when(text.str.contains(r"^[-+]?\d{1,3}(?:,\d{3})+(?:\.\d+)?$")).then(text.str.replace_all(",", ""))
    ).to_series().cast(pl.Float64, strict=False)  # fmt: skip
    series = series.fill_null(special).fill_null(thousands)
    bad = series.is_null() & text.is_not_null() & ~lower.is_in(list(_ABSENT))
    return Parsed(series, bad if bad.any() else None)


def integers(column: pl.Series) -> pl.Series:
    """A column of small whole numbers as Int64; what is none is null."""
    return numbers(column).series.cast(pl.Int64, strict=False)


def derive(data: pl.DataFrame, columns: dict[str, str], notes: list[str]) -> pl.DataFrame:
    """Step time from a running clock, the end of a batch id, where only these were logged."""
    if "step_time" not in data.columns and "elapsed" in data.columns and _fine(data["elapsed"]):
        gap = pl.col("elapsed").drop_nulls().diff()
        steps = pl.col("step").filter(pl.col("elapsed").is_not_null()).diff()
        rate = data.select(pl.when((gap > 0) & (steps > 0)).then(gap / steps).alias("step_time")).to_series()
        rows = data["elapsed"].is_not_null().arg_true()
        spread = pl.DataFrame({"_i": rows, "step_time": rate})
        data = (
            data.with_columns(_i=pl.int_range(pl.len(), dtype=pl.UInt32))
            .join(spread, on="_i", how="left", maintain_order="left")
            .drop("_i")
        )
        columns["step_time"] = columns.get("elapsed", "elapsed")
        notes.append(f"step_time is the difference of {escape(columns['step_time'], 60)} per step")
    return data


def _fine(clock: pl.Series) -> bool:
    """Whether a running clock is on most rows and finer than a tenth of the time between them."""
    present = clock.drop_nulls()
    if present.len() < 3 or present.len() < 0.5 * clock.len():
        return False
    whole = bool((present == present.round()).all())
    gap = present.diff().median()
    return not whole or (isinstance(gap, float) and gap >= 10.0)


def clock_seconds(column: pl.Series, tz: str | None) -> pl.Series | None:
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
    for form in ("%Y-%m-%d %H:%M:%S%.f", "%m-%d-%Y %H:%M:%S%.f", "%Y-%m-%d %H:%M"):
        naive = plain.str.to_datetime(form, strict=False, time_unit="us")
        if naive.count() and naive.count() >= 0.5 * text.count():
            return naive
    return None


def _durations(column: pl.Series) -> pl.Series:
    """`[N days, ]H:MM:SS` or MM:SS as seconds; other text is left as it is."""
    parts = column.str.extract_groups(r"^\s*(?:(\d+) days?,? ?)?(?:(\d+):)?(\d+):(\d+(?:\.\d+)?)\s*$").struct.unnest()
    days, hours, minutes, seconds = (parts.to_series(i).cast(pl.Float64, strict=False) for i in range(4))
    total = days.fill_null(0.0) * 86400 + hours.fill_null(0.0) * 3600 + minutes * 60 + seconds
    if total.count() == 0:
        return column
    return total.alias(column.name)


def _unix(series: pl.Series) -> pl.Series:
    """Unix clocks in ms, µs or ns as seconds."""
    middle = series.drop_nulls().median()
    if not isinstance(middle, int | float):
        return series
    for limit, scale in ((1e17, 1e-9), (1e14, 1e-6), (1e11, 1e-3)):
        if middle > limit:
            return series * scale
    return series


def _bytes(series: pl.Series) -> pl.Series:
    """Memory without a unit: under 4096 it can only be GiB, under 16 million MiB."""
    top = series.drop_nans().max()
    if not isinstance(top, int | float) or top <= 0:
        return series
    return series * (2.0**30 if top < 4096 else 2.0**20 if top < 1.6e7 else 1.0)


def _flags(series: pl.Series) -> pl.Series:
    """A running count of skipped steps as a count per row; a count per row as it is."""
    present = series.drop_nulls()
    if present.len() < 2:
        return series
    rises = present.diff().drop_nulls()
    running = present.max() > 1 and float((rises >= 0).mean() or 0.0) > 0.98  # type: ignore[operator,arg-type]
    if not running:
        return series
    filled = series.forward_fill()
    before = filled.shift()
    change = pl.select(
        pl.when(series.is_null()).then(None).when(before.is_null()).then(pl.when(filled <= 1).then(filled).otherwise(0.0))
        .when(filled >= before).then(filled - before).otherwise(filled)
    )  # fmt: skip
    return change.to_series()


def open_infinities(frame: pl.DataFrame) -> pl.DataFrame:
    """The largest double read as the infinity that SQL stores and jq wrote in its place."""
    bounds = frame.select(cs.float().abs().max())
    full = [name for name in bounds.columns if (top := bounds[name][0]) is not None and _OVERFLOW <= top < float("inf")]
    return frame.with_columns(
        pl.when(pl.col(name).abs() >= _OVERFLOW)
        .then(pl.col(name).sign() * float("inf"))
        .otherwise(pl.col(name))
        .alias(name)
        for name in full
    )


def rejected(lines: pl.Series, texts: pl.Series, name: str) -> pl.DataFrame:
    """Rows of `rejects` for cells that are no number."""
    reason = f"no number in column {escape(name, 60)}"
    return pl.DataFrame(
        {"line": lines, "reason": [reason] * lines.len(), "text": [escape(str(text)) for text in texts.to_list()]},
        schema={"line": pl.Int64, "reason": pl.String, "text": pl.String},
    )


def escape(text: str, limit: int = 120) -> str:
    """Text that cannot act on a terminal: control characters as \\xNN, at most `limit` characters."""
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text[: limit + 1])
    return shown if len(shown) <= limit else shown[: limit - 1] + "…"
