"""Cells, clocks and names of GPU telemetry: shared by all formats that fill `gpus`."""

from __future__ import annotations

import re
from datetime import timedelta, timezone
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import polars as pl

from gdiag.errors import UsageError
from gdiag.schema import TABLES

ABSENT: Final = (
    "", "-", "N/A", "[N/A]", "n/a", "NA", "None", "Not Supported", "[Not Supported]", "Unknown Error", "[Unknown Error]",
    "[Insufficient Permissions]", "Insufficient Permissions", "[GPU is lost]", "GPU is lost", "[Not Found]", "[Not Available]",
    "Requested functionality has been deprecated", "[Requested functionality has been deprecated]", "ERR!", "[Unknown]",
    "GPU requires reset", "[GPU requires reset]", "[Reset Required]",
)  # fmt: skip
"""What drivers print instead of a number: read as not logged."""

UNITS: Final[dict[str, float]] = {
    "": 1.0, "%": 1.0, "C": 1.0, "W": 1.0, "mW": 1e-3, "kW": 1e3, "MHz": 1.0, "Mhz": 1.0, "GHz": 1e3, "Hz": 1e-6,
    "B": 1.0, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30, "KB": 1e3, "MB": 1e6, "GB": 1e9, "us": 1e-6, "ns": 1e-9,
    "ms": 1e-3, "s": 1.0,
}  # fmt: skip
"""Unit as printed → factor to the unit of schema.TABLES (°C, W, MHz, B, s, %)."""

HOUR: Final = 3600.0
_NUMBER: Final = r"^([+-]?(?:(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?|(?i:nan|inf(?:inity)?)))\s*(?:%|[A-Za-z]*)$"
_CLOCKS: Final = (
    "%Y/%m/%d %H:%M:%S%.f", "%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%dT%H:%M:%S%.f", "%Y%m%d %H:%M:%S%.f", "%m-%d-%Y %H:%M:%S%.f",
    "%d/%m/%Y %H:%M:%S%.f", "%a %b %d %H:%M:%S %Y",
)  # fmt: skip
_ZONED: Final = ("%Y-%m-%dT%H:%M:%S%.f%#z", "%Y-%m-%d %H:%M:%S%.f%#z", "%Y-%m-%d %H:%M:%S%.f %#z")


def measured(cell: pl.Expr) -> pl.Expr:
    """A text cell without blanks around it, null where it says that nothing was measured."""
    bare = cell.str.strip_chars()
    return pl.when(~bare.is_in(ABSENT)).then(bare)


def numbers(frame: pl.DataFrame, column: str, unit: str = "") -> pl.Series:
    """The numbers of a `measured` column in canonical units; null where nothing was measured or the cell is no number.

    `unit` is what the header says; a unit in the cell itself wins. Cells that all end alike are cast without a
    regular expression, which is three times faster.
    """
    cells = frame[column]
    known = cells.count()
    if not known:
        return pl.Series(column, [None] * cells.len(), dtype=pl.Float64)
    printed = re.search(r"\s?(%|[A-Za-z]+)$", cells[cells.is_not_null().arg_max() or 0])
    suffix = printed[1] if printed and printed[1] in UNITS else ""
    bare = cells.str.strip_suffix(suffix).str.strip_chars_end() if suffix else cells
    fast = bare.cast(pl.Float64, strict=False)
    if fast.count() == known:
        return fast * UNITS[suffix or (unit if unit in UNITS else "")]
    digits = cells.str.extract(_NUMBER, 1).cast(pl.Float64, strict=False)
    ending = cells.str.extract(r"(%|[A-Za-z]+)$", 1).fill_null("")
    ending = ending.set(digits.is_nan() | digits.is_infinite(), "")
    factor = ending.replace_strict({**UNITS, "": UNITS.get(unit, 1.0)}, default=None, return_dtype=pl.Float64)
    return digits * factor


def unreadable(frame: pl.DataFrame, column: str, values: pl.Series) -> pl.Series:
    """Which `measured` cells hold something that is no number."""
    return frame[column].is_not_null() & values.is_null()


def clock(cells: pl.Series, tz: str | None) -> tuple[pl.Series, bool]:
    """Unix seconds of printed times, and whether their zone is known.

    Numbers are epochs (s, ms, µs or ns by size). A local clock is read in `tz`, else as if it were UTC.

    Raises:
        UsageError: `tz` is neither an IANA zone nor ±HH:MM.
    """
    text = cells.str.strip_chars()
    epoch = text.cast(pl.Float64, strict=False)
    if epoch.count() >= max(1, text.drop_nulls().len() // 2):
        size = float(epoch.drop_nulls().abs().median() or 0)  # type: ignore[arg-type]
        return epoch / (1e9 if size > 1e17 else 1e6 if size > 1e14 else 1e3 if size > 1e11 else 1.0), True
    for form in _ZONED:
        stamp = text.str.to_datetime(form, strict=False, time_unit="us", time_zone="UTC")
        if stamp.count() >= max(1, text.drop_nulls().len() // 2):
            return stamp.dt.epoch("us") / 1e6, True
    best = pl.Series(cells.name, [None] * cells.len(), dtype=pl.Datetime("us"))
    for form in _CLOCKS:
        stamp = text.str.to_datetime(form, strict=False, time_unit="us")
        if stamp.count() > best.count():
            best = stamp
        if best.count() >= max(1, text.drop_nulls().len() // 2):
            break
    return _in_zone(best, tz), tz is not None


def _in_zone(stamp: pl.Series, tz: str | None) -> pl.Series:
    if tz is None:
        return _one_season(stamp.dt.epoch("us") / 1e6)
    shift = fixed_offset(tz)
    if shift is not None:
        return stamp.dt.epoch("us") / 1e6 - shift.utcoffset(None).total_seconds()
    try:
        ZoneInfo(tz)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise UsageError(f"unknown time zone {tz!r}: give an IANA name such as Europe/Berlin, or ±HH:MM") from error
    first, second = (
        stamp.dt.replace_time_zone(tz, ambiguous=which, non_existent="null").dt.epoch("us") / 1e6
        for which in ("earliest", "latest")
    )
    # The hour that comes twice in autumn: its second time begins where the clock goes back.
    again = (stamp.dt.epoch("us").diff() < -HOUR / 2 * 1e6).fill_null(False).cum_max()
    return pl.select(pl.when(again).then(second).otherwise(first)).to_series().alias(stamp.name)


def _one_season(local: pl.Series) -> pl.Series:
    """Local seconds without the hour by which clocks are changed in the night of a Sunday in spring or autumn.

    The switch is told from a pause or an overlap of files by its size, an hour but for the time between two samples, and by
    its date and hour; from there on the clock is read as if it had not been changed.
    """
    step = local.diff().fill_null(0.0)
    usual = step.filter((step > 0.5) & (step < HOUR / 2)).median()  # rows of one reading are milliseconds apart
    slack = 2.0 + 2.0 * (float(usual) if isinstance(usual, float) else 0.0)
    jumps = ((step - HOUR).abs() <= slack) | ((step + HOUR).abs() <= slack)
    if not jumps.any():
        return local
    when = pl.from_epoch(local.cast(pl.Int64), "s")
    night = (when.dt.weekday() == 7) & when.dt.hour().is_between(0, 4) & when.dt.month().is_in([3, 4, 9, 10, 11])
    jump = jumps & night
    return local - (jump.cast(pl.Float64) * HOUR * step.sign()).cum_sum()


def fixed_offset(tz: str) -> timezone | None:
    """The zone that ±HH:MM, UTC or Z stands for, or None for a name."""
    if tz.upper() in ("UTC", "Z", "GMT"):
        return timezone(timedelta(0))
    found = re.fullmatch(r"(?:UTC)?([+-])(\d{1,2}):?(\d{2})?", tz)
    if not found:
        return None
    minutes = int(found[2]) * 60 + int(found[3] or 0)
    if minutes > 14 * 60:
        return None
    return timezone(timedelta(minutes=minutes if found[1] == "+" else -minutes))


def host_in_name(path: str) -> str | None:
    """The host that a file is named for, as in smi_node-003.csv, or None.

    A word counts as a host only when it holds letters and ends in digits (before its domain) and is no word of telemetry
    itself. Dates are no part of it; `gpu` is one where a hyphen joins it to the rest, as in gpu-a12.
    """
    stem = re.sub(r"(?i)(\.(csv|txt|log|tsv|out|prom|json|xml|gz|zst|bz2|xz))+$", "", path.rsplit("/", 1)[-1])
    stem = re.sub(
        r"(^|[._\-@])(\d{4}-?[01]\d-?[0-3]\d|\d{10})([T_.\-]?\d\d[:\-]?\d\d[:\-]?\d\d)?(?=$|[._\-@])", r"\1", stem
    )
    words = r"nvidia[-_]?smi|smi|nvidia|telemetry|metrics?|stats|monitor|dmon|query|usage|util|power|temp|dcgm|log|logs|host|run"
    stem = re.sub(rf"(?i)(^|[._\-@])({words})(?=$|[._\-@])", r"\1", stem)
    stem = re.sub(r"(?i)(^|[._@]|-+(?=gpus?$))gpus?(?=$|[._@])", r"\1", stem).strip("._-@")
    domain = r"(\.[a-z][a-z0-9-]*){2,4}|\.(local|lan|internal)|"
    if re.fullmatch(rf"(?i)[a-z][a-z0-9]*([-.][a-z0-9]+)*?[-_]?\d+({domain})", stem) and not re.match(
        r"(?i)(gpu|cuda|rank|card|run|job|exp|trial|attempt|seed|v)[-_]?\d+$", stem
    ):
        return stem
    return None


def canonical(frame: pl.DataFrame, table: str = "gpus") -> pl.DataFrame:
    """`frame` with only the columns of a record table, in its types and order."""
    schema = TABLES[table]
    return frame.select(pl.col(name).cast(dtype) for name, dtype in schema.items() if name in frame.columns)


def rejects(lines: list[tuple[int, str, str]]) -> pl.DataFrame:
    """Rows of `rejects` from (line, reason, text)."""
    return pl.DataFrame(
        {"line": [n for n, _, _ in lines], "reason": [r for _, r, _ in lines], "text": [t[:200] for _, _, t in lines]},
        schema={"line": pl.Int64, "reason": pl.String, "text": pl.String},
    )


def bus(text: str | None) -> str | None:
    """A PCI address in one spelling: 0000:1b:00 (domain of four digits, lower case, without function)."""
    if not text:
        return None
    found = re.search(r"(?:([0-9a-fA-F]{4,8}):)?([0-9a-fA-F]{2}):([0-9a-fA-F]{2})", text)
    return f"{(found[1] or '0000')[-4:]}:{found[2]}:{found[3]}".lower() if found else None
