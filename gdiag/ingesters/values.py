"""Cells → Float64 in the canonical unit; what is no number is told apart from what was not logged."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import polars as pl
import polars.selectors as cs

from gdiag.ingesters import clocks, dates, grouping_marks
from gdiag.ingesters.aliases import Claim

_ABSENT: Final = ("", "null", "none", "n/a", "na", "-", "--", "<na>", "not logged")
_SPECIAL: Final = {
    "nan": float("nan"), "+nan": float("nan"), "-nan": float("nan"), "inf": float("inf"), "+inf": float("inf"),
    "-inf": float("-inf"), "infinity": float("inf"), "+infinity": float("inf"), "-infinity": float("-inf"),
    "true": 1.0, "false": 0.0, "1.#qnan": float("nan"), "1.#inf": float("inf"), "-1.#inf": float("-inf"),
}  # fmt: skip
_LOSSES: Final = ("loss", "eval_loss")
_SCALAR: Final = r"([-+]?(?:[\d.]+(?:e[-+]?\d+)?|nan|inf))"
_WRAPPED: Final = (
    rf"(?i)^(?:(?:\w+\.)*(?:tensor|array|devicearray|float\d*|bfloat16|int\d*)\(|[\[(])\s*[\[(]*{_SCALAR}\s*[\])]*\s*"
    r"(?:,[^,\d\]]*(?:=[^,]*)?)*[\])]$"
)
"""A number as an array or tensor of one prints it: `[0.001]`, `tensor(3.2, device='cuda:0')`, `np.float32(0.5)`."""
_SPOKEN: Final = (
    r"(?is)^<?[\w.]*(?:tensor|variable)\b.*(?:(?:numpy=|value=)\s*(?:array\()?[\[(]*|,\s*\[+)\s*"
    rf"{_SCALAR}\s*[\])]*(?:,\s*dtype=\w+\))?[)>]?$"
)
"""The same with its shape and type in front: `<tf.Tensor: shape=(), dtype=float32, numpy=0.5>`, Paddle, MindSpore."""
_LOOKED: Final = 100
"""Cells that mostly tell whether a column of text holds numbers."""
_MOST_GIB: Final = 300
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
    if canonical == "time" and (clock := _clock(column, tz)) is not None:
        return Parsed(clock, notes=dates.note(column) if column.dtype == pl.String else ())
    if canonical in ("step", "epoch") and column.dtype == pl.String:
        column = column.str.replace(r"^\s*(\d+)\s*/\s*\d+\s*$", "${1}")  # 601/2161: where it is of how many
    if canonical in ("elapsed", "time") and column.dtype == pl.String:
        column = clocks.durations(column)
    parsed = _counts(column) if canonical in grouping_marks.COUNTS and column.dtype == pl.String else None
    if parsed is None and canonical in _LOSSES and column.dtype == pl.String:
        parsed = _losses(column)
    parsed = parsed or numbers(column)
    series, notes = parsed.series, list(parsed.notes)
    if found.scale is not None and found.scale != 1.0:
        series = series * found.scale
    if canonical == "time":
        series = clocks.unix(series)
    elif canonical == "memory" and found.scale is None:
        series = _bytes(series)
    if found.turn == "inverse":
        series = pl.select(pl.when(series > 0).then(1.0 / series).when(series.is_nan()).then(series)).to_series()
        notes.append(f"{canonical} is 1 / {escape(column.name, 60)}")
    elif found.turn == "root":
        series = series.sqrt()
        notes.append(f"{canonical} is the square root of {escape(column.name, 60)}")
    elif found.turn == "log":
        series = pl.select(pl.when(series > 0).then(series.log()).when(series.is_nan()).then(series)).to_series()
        notes.append(f"{canonical} is the logarithm of {escape(column.name, 60)}")
    elif found.turn == "count":
        series = _flags(series)
    return Parsed(series, parsed.bad, tuple(notes))


def _clock(column: pl.Series, tz: str | None) -> pl.Series | None:
    """Unix seconds of a column of dates, or seconds since the first of its times of day; None where it holds neither."""
    if column.dtype != pl.String and not column.dtype.is_temporal():
        return None
    clock = clocks.seconds(column, tz)
    return clocks.time_of_day(column) if clock is None and column.dtype == pl.String else clock


def _counts(column: pl.Series) -> Parsed | None:
    """A column of counts whose dots may part thousands; None where it has none such."""
    what = grouping_marks.dots(column)
    if what == "thousands":
        said = f"dots in {escape(column.name, 60)} part thousands"
        return replace(numbers(grouping_marks.without_dots(column)), notes=(said,))
    if what == "unsaid":
        first = escape(str(column.filter(column.str.contains(r"\d\.\d"))[0]).strip(), 20)
        said = f"whether {first} in {escape(column.name, 60)} is {float(first):g} or {first.replace('.', '')} cannot be judged"
        return replace(numbers(column), notes=(f"{said}: read as {float(first):g}",))
    return None


def _losses(column: pl.Series) -> Parsed | None:
    """A column of losses whose commas may be decimal ones; None where it has none such."""
    text = column.str.strip_chars().str.strip_chars("'\"")
    told = text.filter(~text.str.to_lowercase().is_in([*_ABSENT, *_SPECIAL]))
    what = grouping_marks.short_commas(told)
    if what == "decimal":
        said = f"commas in {escape(column.name, 60)} are read as decimal ones"
        return replace(numbers(column.str.replace(",", ".", literal=True)), notes=(said,))
    if what == "unsaid":
        first = escape(told[0], 20)
        one, other = first.replace(",", "."), first.replace(",", "")
        said = f"whether {first} in {escape(column.name, 60)} is {one} or {other} cannot be judged: read as {other}"
        return replace(numbers(column), notes=(said,))
    return None


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
    series = series.fill_null(special).fill_null(grouping_marks.plain(text)).fill_null(unwrapped(text))
    bad = series.is_null() & text.is_not_null() & ~lower.is_in(list(_ABSENT))
    return Parsed(series, bad if bad.any() else None)


def told(column: pl.Series) -> pl.Series:
    """Which cells say anything, be it no number: those that are not null, empty or a word for it."""
    if column.dtype != pl.String:
        return column.is_not_null()
    return ~column.str.strip_chars().str.to_lowercase().is_in([*_ABSENT]).fill_null(True)


def are_numbers(column: pl.Series) -> bool:
    """Whether a column holds numbers and nothing else, be they written as text; `True` and `False` alone are none."""
    if column.dtype != pl.String:
        return column.dtype.is_numeric() and column.count() > 0
    for part in (column.head(_LOOKED), column):
        parsed = numbers(part.drop_nulls())
        if parsed.bad is not None:
            return False
    return bool(parsed.series.count()) and bool(column.str.contains(r"\d").any())


def unwrapped(text: pl.Series) -> pl.Series:
    """The number that each cell wraps in the type or the brackets of an array of one, null where it does not."""
    short = text.str.extract(_WRAPPED).cast(pl.Float64, strict=False)
    return short.fill_null(text.str.extract(_SPOKEN).cast(pl.Float64, strict=False))


def as_number(text: str) -> float | None:
    """A number as a program prints it, None for what is none."""
    try:
        return float(text)
    except ValueError:
        return _SPECIAL.get(text.lower())


def whole(text: str, *, bits: int = 64) -> int | None:
    """A whole number in ASCII digits that a signed column of so many bits holds, else None.

    Python's own int() takes other scripts' digits, raises on "²" and on 5,000 digits, and gives what no column can hold.
    """
    digits = text.strip().lstrip("+-")
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 19:
        return None
    number = int(text)
    return number if -(2 ** (bits - 1)) <= number < 2 ** (bits - 1) else None


def _bytes(series: pl.Series) -> pl.Series:
    """Memory without a unit: no more than a GPU has GiB (288 at most), under 16 million MiB."""
    top = series.drop_nans().max()
    if not isinstance(top, int | float) or top <= 0:
        return series
    return series * (2.0**30 if top < _MOST_GIB else 2.0**20 if top < 1.6e7 else 1.0)


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
    bounds = frame.select(cs.float().abs().max()).rows(named=True)
    full = [name for row in bounds for name, top in row.items() if top is not None and _OVERFLOW <= top < float("inf")]
    return frame.with_columns(
        pl.when(pl.col(name).abs() >= _OVERFLOW)
        .then(pl.col(name).sign() * float("inf"))
        .otherwise(pl.col(name))
        .alias(name)
        for name in full
    )


def rejected(lines: pl.Series, texts: pl.Series, name: str, what: str = "number") -> pl.DataFrame:
    """Rows of `rejects` for cells that are no number, or not what else they should be."""
    reason = f"no {what} in column {escape(name, 60)}"
    return pl.DataFrame(
        {"line": lines, "reason": [reason] * lines.len(), "text": [escape(str(text)) for text in texts.to_list()]},
        schema={"line": pl.Int64, "reason": pl.String, "text": pl.String},
    )


def escape(text: str, limit: int = 120) -> str:
    """Text that cannot act on a terminal: control characters as \\xNN, at most `limit` characters."""
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text[: limit + 1])
    return shown if len(shown) <= limit else shown[: limit - 1] + "…"
