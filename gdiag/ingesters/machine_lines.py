"""Lines in which the machine reports itself: Xid, SXid, lost GPUs, NCCL warnings and watchdogs, out of memory, with their clocks.

Wordings: NVIDIA's open kernel modules and Xid catalogue, fabric manager and device-plugin logs, NCCL src/, PyTorch's
ProcessGroupNCCL.cpp; see also gdiag/reference/xids.tsv.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

import polars as pl

from gdiag.ingesters import prefixes, telemetry, text
from gdiag.ingesters.values import whole
from gdiag.reference.nics import nic_line
from gdiag.schema import TABLES

NEEDLES: Final = (
    "Xid", "fallen off the bus", "GPU is lost", "RmInitAdapter failed", "NVSwitch", "The NVIDIA GPU", "NCCL WARN", "NET/IB", "libnccl",
    "Watchdog caught", "last enqueued", "Out of memory: Killed", "oom-kill", "callbacks suppressed", "probe routine failed",
    "mlx5_core", "mlx5_", "No space left on device", "Disk quota exceeded", "CUDA out of memory", "Hardware Error",
)  # fmt: skip

NO_YEAR: Final = "clock without a year: taken from the file's date, or from the steps beside it"

_XID: Final = re.compile(r"NVRM: (?:GPU at [^,]*, )?Xid \((?:PCI:)?([^)]*)\): (\d+)(?:,\s*(.*))?")
_SXID: Final = re.compile(r"nvidia-nvswitch(\d+): SXid \((?:PCI:)?([^)]*)\): (\d+),?\s*(.*)")
_PLUGIN: Final = re.compile(r"Xid=(\d+) on Device=(\S+?)[;,.]")
_FABRIC: Final = re.compile(r"detected NVSwitch (fatal|non-fatal) error (\d+) on .*?pci bus id ([0-9a-fA-F:.]+)")
_LOST: Final = re.compile(r"fallen off the bus|GPU is lost|RmInitAdapter failed", re.IGNORECASE)
_WATCHDOG: Final = re.compile(
    r"Watchdog caught collective operation timeout: WorkNCCL\(SeqNum=(\d+), OpType=(\w+).*?ran for (\d+) milliseconds",
    re.DOTALL,
)
_QUEUE: Final = re.compile(r"last enqueued (?:NCCL )?work: (\d+), last completed (?:NCCL )?work: (\d+)")
_RANK: Final = re.compile(r"\[rank ?(\d+)\]|\[?Rank (\d+)\]")
_HOST_PREFIX: Final = re.compile(r"^([\w.-]+):\d+:\d+ \[(\d+)\] ")
_CARD: Final = re.compile(r"mlx5_core(?:\.sf)? ([0-9a-fA-F]{4}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.\d)")
_OOM: Final = re.compile(r"CUDA out of memory|Out of memory: Killed process|oom-kill:")

_GOES_ON: Final = re.compile(r"^\s+NVRM:|^0, vendor err|^milliseconds")
"""Second lines of messages that a terminal broke."""
WORDS: Final = (*NEEDLES, "NVRM:", "0, vendor err", "milliseconds")
"""Of which every line has one that may hold an event or go on with one."""

_BOOT: Final = re.compile(r"^(?:\d+,\d+,\d+,\S*;|\[ *\d+\.\d+\])")
_CTIME: Final = re.compile(r"\[?((?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) \w{3} +\d+ \d\d:\d\d:\d\d \d{4})\]?")
_FABRIC_CLOCK: Final = re.compile(r"\[(\w{3} \d\d \d{4} \d\d:\d\d:\d\d)\]")
_SYSLOG: Final = re.compile(r"^(\w{3} +\d+ \d\d:\d\d:\d\d) (\S+) ")
_JOURNAL: Final = re.compile(r"^\d{4}-\d\d-\d\dT[\d:.,]+(?:Z|[+-]\d\d:?\d\d)? ([A-Za-z][\w.-]*) kernel:")
_YEAR: Final = re.compile(r"\b(?:19|20)\d\d\b")
_GLOG: Final = re.compile(r"[EIWF](\d{1,2})(\d\d) (\d\d:\d\d:\d\d)\.(\d{3,9})")


def among(table: pl.DataFrame, tz: str | None, year: int | None) -> tuple[pl.DataFrame, list[str]]:
    """Rows of `events` from the lines of a table (`line`, `text`) that may hold one, and notes; see `events`."""
    busy = pl.col("text").str.contains_any(list(NEEDLES)) | pl.col("text").str.contains(_GOES_ON.pattern)
    return events(table.filter(busy).select("line", "text").iter_rows(), tz, year)


def events(lines: Iterable[tuple[int, str]], tz: str | None, year: int | None) -> tuple[pl.DataFrame, list[str]]:
    """Rows of `events` from (line number, text), and notes. `year` completes clocks that are printed without one."""
    rows: list[dict[str, object]] = []
    notes: list[str] = []
    known: list[bool] = []
    undated = False
    for number, line in _joined(lines):
        if "callbacks suppressed" in line:
            notes.append("the kernel suppressed repeated lines: counts are lower bounds")
            continue
        found = _event(line)
        if found is None:
            continue
        time, zoned = _clock(line, tz, year)
        known.append(zoned)
        undated |= time is not None and (_SYSLOG.match(line) is not None or not _YEAR.search(line[:80]))
        rank, host = _RANK.search(line), _syslog_host(line)
        prefix = _HOST_PREFIX.match(line)
        row: dict[str, object] = {"line": number, "time": time, "zone_known": zoned if time is not None else None}
        if rank:
            row["rank"] = whole(rank[1] or rank[2], bits=32)
        if host or prefix:
            row["host"] = host or (prefix[1] if prefix else None)
        if prefix:
            row["gpu"] = whole(prefix[2], bits=32)
        rows.append(row | found)
    if rows and not any(r["time"] is not None for r in rows):
        notes.append("clocks count from boot or are absent: events cannot be placed in time")
    elif not all(known):
        notes.append("local time without a zone")
    if undated:
        notes.append(NO_YEAR)
    types = TABLES["events"]
    names = [c for c in types if c not in ("run", "source")]
    frame = pl.DataFrame([{c: r.get(c) for c in names} for r in rows], schema={c: types[c] for c in names})
    return frame, list(dict.fromkeys(notes))


def in_year_of(events: pl.DataFrame, moment: float | pl.Series) -> pl.DataFrame:
    """Events whose clock prints no year, each in the year that brings it nearest to `moment` [Unix s], one for all or its own."""
    moments = moment if isinstance(moment, pl.Series) else pl.Series([moment]).new_from_index(0, len(events))
    pairs = zip(events["time"].to_list(), moments.to_list(), strict=True)
    times = [time if time is None or at is None else _nearest_year(time, at) for time, at in pairs]
    return events.with_columns(pl.Series("time", times, dtype=pl.Float64))


def _nearest_year(time: float, moment: float) -> float:
    year, then = datetime.fromtimestamp(moment, UTC).year, datetime.fromtimestamp(time, UTC)
    if (then.month, then.day) == (2, 29):
        return time
    years = (then.replace(year=y).timestamp() for y in (year - 1, year, year + 1))
    return min(years, key=lambda t: abs(t - moment))


def _joined(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Lines with their continuations: messages that the driver or a terminal spread over several lines."""
    held: tuple[int, str] | None = None
    for number, line in lines:
        goes_on = held is not None and (
            (line.startswith((" ", "\t")) and "NVRM:" in line)
            or not line[:1].strip()
            or line.startswith(("0, vendor err", "milliseconds"))
        )
        if held is not None and goes_on:
            held = (held[0], f"{held[1]} {line.strip()}")
            continue
        if held is not None:
            yield held
        held = (number, line)
    if held is not None:
        yield held


def _event(line: str) -> dict[str, object] | None:
    if m := _XID.search(line):
        return {"kind": "xid", "value": float(m[2]), "bus_id": telemetry.bus(m[1]), "text": _said(line, m.start())}
    if m := _SXID.search(line):
        return {"kind": "sxid", "value": float(m[3]), "bus_id": telemetry.bus(m[2]), "text": _said(line, m.start())}
    if m := _FABRIC.search(line):
        return {"kind": "sxid", "value": float(m[2]), "bus_id": telemetry.bus(m[3]), "text": _said(line, m.start())}
    if m := _PLUGIN.search(line):
        return {"kind": "xid", "value": float(m[1]), "text": _said(line, m.start())}
    if m := _WATCHDOG.search(line):
        return {"kind": "nccl_timeout", "value": float(m[1]), "text": _said(line, m.start())}
    if m := _QUEUE.search(line):
        return {"kind": "nccl_timeout", "value": float(m[2]) + 1, "text": _said(line, max(0, m.start() - 60))}
    if _LOST.search(line):
        return {"kind": "gpu_lost", "value": 79.0, "bus_id": telemetry.bus(line), "text": _said(line, 0)}
    if "mlx5_" in line:
        known = nic_line(line)
        if known is not None and known.name != "register_access":
            return {"kind": "nic", "bus_id": _card(line), "text": _said(line, line.index("mlx5_"))}
    if _OOM.search(line):
        return {"kind": "oom", "text": _said(line, 0)}
    if "NCCL WARN" in line:
        return {"kind": "nccl_warning", "text": _said(line, line.index("NCCL WARN"))}
    if "libnccl" in line and "segfault" in line:
        return {"kind": "nccl_warning", "text": _said(line, 0)}
    if any(words in line for words in ("No space left on device", "Disk quota exceeded", "Hardware Error")):
        return {"kind": "message", "text": _said(line, 0)}
    return None


def _card(line: str) -> str | None:
    """PCI address of a network card, with the function that tells its ports apart."""
    found = _CARD.search(line)
    return found[1].lower() if found else None


def _said(line: str, start: int) -> str:
    return text.redact(" ".join(line[start:].split()))


def _syslog_host(line: str) -> str | None:
    if journal := _JOURNAL.match(line):
        return journal[1]
    found = _SYSLOG.match(line)
    return found[2] if found and found[2] not in ("kernel:", "kern") else None


def _clock(line: str, tz: str | None, year: int | None) -> tuple[float | None, bool]:
    """Unix seconds, and whether the zone is known; (None, True) for clocks that count from boot."""
    whole = prefixes.clocks(pl.Series([line[:80]]), tz)[0]
    if whole is not None:
        zoned = re.search(r"\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)\b", line[:80]) is not None
        return float(whole), zoned or tz is not None
    for pattern, form in ((_CTIME, "%a %b %d %H:%M:%S %Y"), (_FABRIC_CLOCK, "%b %d %Y %H:%M:%S")):
        if found := pattern.search(line[:120]):
            return _unix(" ".join(found[1].split()), form, tz), tz is not None
    if year is None or _BOOT.match(line):
        return None, True
    if found := _SYSLOG.match(line):
        return _unix(f"{year} {' '.join(found[1].split())}", "%Y %b %d %H:%M:%S", tz), tz is not None
    if found := _GLOG.search(line):
        stamp = _unix(f"{year}-{found[1]}-{found[2]} {found[3]}", "%Y-%m-%d %H:%M:%S", tz)
        return (stamp + float(f"0.{found[4]}") if stamp is not None else None), tz is not None
    return None, True


def _unix(stamp: str, form: str, tz: str | None) -> float | None:
    try:
        moment = datetime.strptime(stamp, form)
    except ValueError:
        return None
    zone = prefixes.zone_minutes(tz)
    if isinstance(zone, int):
        return moment.replace(tzinfo=UTC).timestamp() - timedelta(minutes=zone).total_seconds()
    return moment.replace(tzinfo=zone).timestamp()
