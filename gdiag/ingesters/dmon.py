"""Columns under '#' headers: nvidia-smi dmon and dcgmi dmon."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import polars as pl

from gdiag.errors import InputError
from gdiag.ingesters import console, telemetry, values
from gdiag.ingesters.reading import Input, Options, Reading
from gdiag.model import Source

FORMAT = "dmon"

_COLUMNS: Final = {
    "pwr": ("power", "W"), "gtemp": ("temperature", "C"), "mtemp": ("memory_temperature", "C"), "sm": ("utilization", "%"),
    "pclk": ("clock_sm", "MHz"), "mclk": ("clock_memory", "MHz"), "fb": ("memory_used", "MiB"), "sbecc": ("ecc_corrected", ""),
    "dbecc": ("ecc_uncorrected", ""),
    "power": ("power", "W"), "tmptr": ("temperature", "C"), "mmtmp": ("memory_temperature", "C"), "gputl": ("utilization", "%"),
    "smclk": ("clock_sm", "MHz"), "mmclk": ("clock_memory", "MHz"), "fbusd": ("memory_used", "MiB"), "fbttl": ("memory_total", "MiB"),
    "dvcctr": ("reasons", ""), "dvccts": ("reasons", ""), "dvccer": ("reasons", ""), "smmax": ("clock_sm_max", "MHz"),
    "eplmt": ("power_limit", "W"), "pmlmt": ("power_limit", "W"), "pwlmt": ("power_limit", "W"), "pwmgmtlmt": ("power_limit", "W"),
    "pmdef": ("power_default_limit", "W"), "esvtl": ("ecc_corrected", ""), "edvtl": ("ecc_uncorrected", ""), "fansp": ("fan", "%"),
}  # fmt: skip
"""Short name of either tool, lower case → canonical column and unit (nvidia-smi dmon -h; short names of dcgm_fields.cpp)."""
_HEADER: Final = re.compile(r"(?i)^#\s*(?=.*\b(?:gpu|entity)\b)(.+)$")
_UNIT_ROW: Final = re.compile(r"(?i)^#?\s*(?:idx|id)\b")


def recognise(given: Input) -> float:
    text = given.head[:8192].decode("utf-8", "replace")
    header = next((m[1].lower().split() for line in text.splitlines() if (m := _HEADER.match(line))), [])
    known = [w for w in header if w in _COLUMNS]
    return 0.95 if known and header[0] in ("gpu", "entity") else 0.9 if known and "gpu" in header else 0.0


def read(given: Input, options: Options) -> Reading:
    """Samples; the header counts from where it stands, and is repeated now and then.

    Raises:
        InputError: there is no row under a header.
    """
    rows: list[dict[str, object]] = []
    bad: list[tuple[int, str, str]] = []
    header: list[str] = []
    columns: dict[str, str] = {}
    stamps: list[str] = []
    last = 0
    for number, line in console.lines_of(given).select("line", "text").iter_rows():
        last = number
        if found := _HEADER.match(line):
            header = found[1].lower().split()
            columns |= {_COLUMNS[w][0]: w for w in header if w in _COLUMNS}
        elif not line.strip() or line.startswith("#") or _UNIT_ROW.match(line) or not header:
            continue
        else:
            row = _row(line, header)
            if row is None:
                bad.append((number, "not the columns of the header", line))
            else:
                stamps.append(str(row.pop("stamp", "")))
                rows.append(row | {"line": number})
    if bad and bad[-1][0] == last:
        bad[-1] = (last, "cut off in mid-row", bad[-1][2])
    if not rows:
        raise InputError(f"{given.path} has the header of dmon but no rows")
    return _reading(given, options, rows, stamps, columns, bad)


def _row(line: str, header: Sequence[str]) -> dict[str, object] | None:
    cells = line.split()
    if header[0] == "entity":  # 'GPU 0' is one cell in two words
        if len(cells) != len(header) + 1 or not re.fullmatch(r"(?i)gpu(-?i)?|gpu", cells[0]):
            return None
        cells = cells[1:]
    if len(cells) != len(header):
        return None
    row: dict[str, object] = {}
    for name, cell in zip(header, cells, strict=True):
        if name in ("gpu", "entity"):
            if (gpu := values.whole(cell, bits=32)) is None:
                return None
            row["gpu"] = gpu
        elif name in ("date", "time"):
            row["stamp"] = f"{row.get('stamp', '')} {cell}".strip()
        elif name in _COLUMNS:
            value = _number(cell)
            if value is None and cell not in telemetry.ABSENT:
                return None
            column, unit = _COLUMNS[name]
            if value is not None:
                row[column] = int(value) if column == "reasons" else value * telemetry.UNITS[unit]
    return row


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None


def _reading(
    given: Input, options: Options, rows: list[dict[str, object]], stamps: list[str], columns: dict[str, str], bad: list[tuple[int, str, str]]
) -> Reading:  # fmt: skip
    table = pl.DataFrame(rows, infer_schema_length=None)
    notes: list[str] = []
    times, known = telemetry.clock(pl.Series("stamp", stamps), options.tz)
    if times.count():
        table = table.with_columns(times.alias("time"), pl.lit(known).alias("zone_known"))
        notes += [] if known else ["local time without a zone"]
    else:
        notes.append("no date and time (dmon -o DT prints them): nothing can be placed in time")
    if host := telemetry.host_in_name(given.path):
        table = table.with_columns(pl.lit(host).alias("host"))
    return Reading(
        Source(given.path, FORMAT, table.height, len(bad), columns, tuple(notes)),
        gpus=telemetry.canonical(table), rejects=telemetry.rejects(bad) if bad else None,
    )  # fmt: skip
