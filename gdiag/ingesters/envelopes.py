"""Log lines inside JSON: journalctl -o json, docker's json-file, fluentd, Loki, CloudWatch, Stackdriver, Elasticsearch, Splunk.

What a collector wraps is unwrapped to the lines that the machine or the program printed, each behind its moment and, for the
kernel's, its host, as `journalctl -o short-iso` prints them; the readers of plain logs do the rest. Field names: systemd's
journal fields, docker's json-file driver, fluent-bit's kubernetes filter, Loki's and CloudWatch's query results.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache
from itertools import islice
from typing import Final

import polars as pl

from gdiag.ingesters import claims, envelope_lines, machine_lines
from gdiag.ingesters.envelope_lines import Hosts
from gdiag.ingesters.envelope_records import INSIDE, LOOK, line_by_line, parsed, records
from gdiag.ingesters.reading import Input, Options, Take

_MESSAGES: Final = (
    "MESSAGE", "log", "message", "msg", "textPayload", "@message", "line", "_raw", "body", "jsonPayload.message", "jsonPayload.MESSAGE", "fields.message",
)  # fmt: skip
_TIMES: Final = (
    "__REALTIME_TIMESTAMP", "_SOURCE_REALTIME_TIMESTAMP", "time", "@timestamp", "timestamp", "ts", "_time", "date", "eventTime",
)  # fmt: skip
_HOSTS: Final = (
    "_HOSTNAME", "kubernetes.host", "kubernetes.node_name", "kubernetes.nodeName", "k8s.node.name", "node_name", "nodeName", "hostname",
    "host.name", "host.hostname", "host", "node", "instance", "resource.labels.node_name", "resource.labels.instance_id", "logStreamName",
)  # fmt: skip
_LIKE: Final = frozenset(
    {"stream", "PRIORITY", "_TRANSPORT", "SYSLOG_IDENTIFIER", "kubernetes", "labels", "severity", "level", "docker"}
)
"""Fields beside a message that speak for a collector even without a clock."""
_TRAINING: Final = frozenset({"loss", "eval_loss", "grad_norm", "lr", "step"})
_LOSS: Final = frozenset({"loss", "eval_loss", "grad_norm"})
"""Fields of which one record says that the file is a training log, which may begin with messages."""
_SHARE: Final = 0.6
_LARGEST: Final = 1 << 27
"""One document with more bytes is not read: all of it would be in memory as objects."""
_FIRST: Final = 1 << 22
"""Bytes in which the first record has to end."""
_MOST: Final = 20_000
"""Lines looked at that hold one needle."""
_HEAD: Final = 1 << 16
_BYTES: Final = (b'"MESSAGE":[', b'"MESSAGE" : [', b'"MESSAGE": [')
"""A journal's message as numbers of bytes, in which no word can be searched."""
_KERNEL: Final = ("NVRM: ", "nvidia-nvswitch", "mlx5_core")
NOTE: Final = "log lines unwrapped from JSON"


@dataclass(frozen=True, slots=True)
class Line:
    """One wrapped line."""

    message: str
    time: float | None
    """Unix seconds."""
    host: str | None
    kernel: bool

    def printed(self) -> str:
        """As a journal prints it; line breaks inside become blanks, for numbers of lines to stay.

        A message that is an object itself stands alone: its own fields tell its clock.
        """
        if self.message.lstrip().startswith("{"):
            return " ".join(self.message.split("\n")).strip()
        stamp = (
            "" if self.time is None else datetime.fromtimestamp(self.time, UTC).isoformat(timespec="microseconds") + " "
        )
        source = f"{self.host or 'localhost'} kernel: " if self.kernel and stamp else ""
        return stamp + source + " ".join(self.message.split("\n")).strip()


@dataclass(frozen=True, slots=True)
class Unwrapped:
    """The lines inside a wrapped log."""

    lines: Input
    """As a file of their own."""
    hosts: Hosts
    timed: bool
    """Whether every line has its moment."""


def unwrapped(given: Input) -> Unwrapped | None:
    """The lines inside; None where the content is no wrapped log.

    Lines that are no objects are passed on as they are, for the reader of the lines to look at.
    """
    take, size = given.opened()
    head, seen = given.head.replace(b"\0", b""), len(given.head)
    while head.lstrip()[:1] == b"{" and b"\n" not in head.strip() and seen < min(size, _FIRST):
        seen = max(4 * seen, _HEAD)  # the first record is longer
        head = take(0, min(seen, size)).replace(b"\0", b"")
    if head.lstrip()[:1] not in (b"{", b"["):
        return None
    if not any(f'"{name.rpartition(".")[2]}"'.encode() in head for name in (*_MESSAGES, "values")):
        return None
    start = [record for record in islice(records(head, whole=False), LOOK) if not isinstance(record, str)]
    if not start or sum(map(_wraps, start)) < _SHARE * len(start):
        return None
    if line_by_line(head):
        return _streamed(given, take, size)
    return _document(given) if size <= _LARGEST else None


def _streamed(given: Input, take: Take, size: int) -> Unwrapped | None:
    """Objects line by line: one line and what was printed so far are all that is in memory."""
    content, hosts = io.BytesIO(), Hosts()
    timed, some = True, False
    for number, raw in enumerate(envelope_lines.each(take, size), 1):
        raw = raw.replace(b"\0", b"")
        record = parsed(raw)
        if record is not None and _claims(record) & _LOSS:
            return None
        line = None if record is None else of(record)
        if line is not None:
            some, timed = True, timed and line.time is not None
        hosts.add(number, line.host if line is not None else None)
        shown = raw.decode("utf-8", errors="replace").strip() if record is None else line.printed() if line else ""
        content.write(shown.encode() + b"\n")
    return _unwrapped(given, content.getvalue(), hosts, timed=timed) if some else None


def _document(given: Input) -> Unwrapped | None:
    """The records of one document, by their moments: answers to queries come newest first as often as not."""
    found: list[Line] = []
    for record in records(given.data().replace(b"\0", b""), whole=True):
        if isinstance(record, str):
            continue
        if _claims(record) & _LOSS:
            return None
        if (line := of(record)) is not None:
            found.append(line)
    if not found:
        return None
    timed = all(line.time is not None for line in found)
    if timed:
        if (found[0].time or 0.0) > (found[-1].time or 0.0):
            found.reverse()
        found.sort(key=lambda line: line.time or 0.0)
    hosts = Hosts()
    for number, line in enumerate(found, 1):
        hosts.add(number, line.host)
    return _unwrapped(given, "".join(line.printed() + "\n" for line in found).encode(), hosts, timed=timed)


def _unwrapped(given: Input, content: bytes, hosts: Hosts, *, timed: bool) -> Unwrapped:
    return Unwrapped(replace(given, head=_head(content), content=content, file=None), hosts, timed)


def of(record: Mapping[str, object]) -> Line | None:
    """The line that a record wraps, None where it wraps none."""
    flat = _flat(record)
    message = next((flat[name] for name in _MESSAGES if isinstance(flat.get(name), str | list)), None)
    if isinstance(message, list) and all(isinstance(c, int) and 0 <= c < 256 for c in message):
        message = bytes(message).decode("utf-8", errors="replace")
    if not isinstance(message, str):
        return None
    host = next((value for name in _HOSTS if isinstance(value := flat.get(name), str) and value), None)
    time = next((t for name in _TIMES if (t := _moment(flat.get(name))) is not None), None)
    kernel = "kernel" in (flat.get("_TRANSPORT"), flat.get("SYSLOG_IDENTIFIER")) or message.startswith(_KERNEL)
    return Line(message, time, host.split("/")[-1][:80] if host else None, kernel)


def wraps(names: Iterable[str]) -> bool:
    """Whether rows of a JSON log with cells of these names may wrap messages."""
    return not set(_MESSAGES).isdisjoint(name.replace("/", ".") for name in names)


def events(data: bytes, tz: str | None, numbers: Sequence[int] | None = None) -> tuple[pl.DataFrame | None, list[str]]:
    """Machine events of wrapped or bare lines among the rows of another JSON log, and notes.

    Args:
        data: the log, or some of its lines.
        tz: zone of clocks printed without one.
        numbers: numbers of these lines; absent, they count from 1.
    """
    rows: list[tuple[int, str]] = []
    hosts: dict[int, str] = {}
    for place, raw in _telling(data):
        number = place if numbers is None else numbers[place - 1]
        line = of(record) if (record := parsed(raw)) is not None else None
        shown = (
            line.printed() if line is not None else raw.decode("utf-8", errors="replace") if record is None else None
        )
        if shown is not None:
            rows.append((number, shown))
        if line is not None and line.host:
            hosts[number] = line.host
    found, notes = machine_lines.events(rows, tz, None) if rows else (None, [])
    if found is None or not found.height:
        return None, []
    return at_hosts(found, hosts), notes


def _telling(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Numbered lines that hold one of the needles; found by searching the whole, as most lines hold none."""
    starts: set[int] = set()
    for needle in (*(word.encode() for word in machine_lines.NEEDLES), *_BYTES):
        at, own = data.find(needle), 0
        while at >= 0 and own < _MOST:
            starts.add(data.rfind(b"\n", 0, at) + 1)
            end, own = data.find(b"\n", at), own + 1
            at = data.find(needle, end) if end >= 0 else -1
    number, before = 1, 0
    for start in sorted(starts):
        number += data.count(b"\n", before, start)
        before = start
        end = data.find(b"\n", start)
        yield number, data[start : end if end >= 0 else len(data)]


def at_hosts(events: pl.DataFrame, hosts: Hosts | Mapping[int, str]) -> pl.DataFrame:
    """Events with the host of their line where they name none."""
    if "line" not in events.columns:
        return events
    host = pl.Series([None if line is None else hosts.get(line) for line in events["line"].to_list()], dtype=pl.String)
    own = pl.col("host") if "host" in events.columns else pl.lit(None, pl.String)
    return events.with_columns(pl.coalesce(own.replace("localhost", None), host).alias("host"))


def _claims(record: Mapping[str, object]) -> frozenset[str]:
    """What a training log would call the record's fields."""
    return _named(tuple(name.replace(".", "/") for name in _flat(record)))


@lru_cache(maxsize=1024)
def _named(names: tuple[str, ...]) -> frozenset[str]:
    return _TRAINING & claims.known(list(names), Options())


def _wraps(record: Mapping[str, object]) -> bool:
    flat = _flat(record)
    if not any(isinstance(flat.get(name), str | list) for name in _MESSAGES):
        return False
    if _claims(record):
        return False
    return any(name in flat for name in (*_TIMES, *_HOSTS)) or bool(_LIKE & set(record))


def _flat(record: Mapping[str, object]) -> dict[str, object]:
    """Fields by their dotted names, two levels deep; those of INSIDE under their bare names too."""
    flat: dict[str, object] = {}
    for key, value in record.items():
        flat[key] = value
        if isinstance(value, dict):
            for name, inner in value.items():
                flat[f"{key}.{name}"] = inner
                if key in INSIDE:
                    flat.setdefault(name, inner)
                if isinstance(inner, dict):
                    flat |= {f"{key}.{name}.{k}": v for k, v in inner.items()}
    return flat


def _moment(value: object) -> float | None:
    """Unix seconds of a clock in figures (s, ms, µs or ns by size) or in ISO 8601; collectors without a zone mean UTC."""
    try:
        figure = float(value) if isinstance(value, int | float | str) and not isinstance(value, bool) else None
    except ValueError:
        figure = None
    if figure is not None:
        size = abs(figure)
        seconds = figure / (1e9 if size > 1e17 else 1e6 if size > 1e14 else 1e3 if size > 1e11 else 1.0)
        return seconds if 1e8 < seconds < 1e10 else None
    try:
        moment = datetime.fromisoformat(value[:40]) if isinstance(value, str) else None
    except ValueError:
        return None
    if moment is None:
        return None
    seconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    return seconds if 1e8 < seconds < 1e10 else None


def _head(content: bytes) -> bytes:
    """The first lines, and those from all through it that tell what the log is."""
    if len(content) <= _HEAD:
        return content
    needles = [needle.encode() for needle in machine_lines.NEEDLES]
    telling: list[bytes] = []
    for line in content[_HEAD // 2 :].split(b"\n"):
        if any(needle in line for needle in needles):
            telling.append(line[:400])
            if len(telling) == 20:
                break
    return content[: _HEAD // 2] + b"\n" + b"\n".join(telling) + b"\n"
