"""Counters and states of network ports: perfquery, ibqueryerrors, ibdiagnet, mlxlink, sysfs, ibstat, iblinkinfo, ethtool, SONiC.

All forms end as rows of `ports`: one counter of one port in one reading. Names are those of sysfs in lower case
(SymbolErrorCounter → symbol_error). States become the counters `active` (1 or 0), `link_up` and `rate` [Gb/s]; bit error
rates become `raw_ber`, `effective_ber` and `symbol_ber`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import polars as pl

from gdiag.errors import InputError
from gdiag.ingesters import port_rows
from gdiag.ingesters.port_place import CA, ERRORS_FOR, PERFQUERY, SONIC_HEAD, Place
from gdiag.ingesters.reading import Input, Options, Reading
from gdiag.ingesters.values import whole
from gdiag.model import Source
from gdiag.reference.port_counters import thresholds

FORMAT: Final = "port-counters"
_LONGEST: Final = 1 << 10
"""Characters of a line that are looked at: patterns with a name in front of a name would take for ever on more."""

_SYSFS: Final = re.compile(r"/sys/class/infiniband/([\w.-]+)/ports/(\d+)/(?:(?:hw_)?counters/)?(\w+):\s*(.+)$")
_NODE_GUID: Final = re.compile(r"/sys/class/infiniband/([\w.-]+)/node_guid:\s*([0-9a-f:]{16,19})\s*$")
_DOTTED: Final = re.compile(r"^\s*(\w+):\.+(\d+|0x[0-9a-fA-F]+)\s*$")
_ERRORS: Final = re.compile(r"^\s*GUID (0x[0-9a-f]+) port (\w+):")
_COUNTED: Final = re.compile(r"^\s*GUID 0x[0-9a-f]+ port \w+: \[\w+ == \d+")
_BRACKET: Final = re.compile(r"\[(\w+) == (\d+)")
_FIELD: Final = re.compile(r"^\s+(State|Physical state|Rate|Port GUID): (\S+)")
_ETHTOOL: Final = re.compile(r"^\s*((?:rx|tx)_[\w.]+|[\w.]+_(?:phy|discard|errors?)): (\d+)\s*$")
_BER: Final = re.compile(r"^\s*(Raw|Effective|Symbol)(?: Physical)? BER\s*:\s*(\d+(?:\.\d+)?[eE]-?\d+|0)\s*$")
_RATE: Final = re.compile(r"\d+(?:\.\d+)?(?:[eE]-?\d+)?$")
_BER_TABLE: Final = re.compile(r":\s*Raw BER\s*:")
_BER_COLUMNS: Final = {
    "Raw BER": "raw_ber",
    "Effective BER": "effective_ber",
    "Eff BER": "effective_ber",
    "Symbol BER": "symbol_ber",
}
_MLXLINK: Final = re.compile(r"\bmlxlink\b.*?-d\s+(\S+)")
_GROWN: Final = re.compile(r'(\S+)/P(\d+)\s+-\s+"(\w+)" increased during the run \(difference value=(\d+)')
_LINK: Final = re.compile(
    r"^\s*(?:(0x[0-9a-f]+)\s+)?\d+\s+(\d+)\[.*?\] ==\( *\d+X +(\d+(?:\.\d*)?) Gbps (\w+)/ *(\w+)\)"
    r'(?:==>\s+(?:\d+\s+)?(\d+)?\[.*?\]\s+"([^"]*)")?'
)
_FABRIC_NODE: Final = re.compile(r"^(?:(CA): |Switch: 0x[0-9a-f]+ )([^\n]*?):?\s*$")
_SONIC: Final = re.compile(r"^\s*(Ethernet\d+)((?:\s+[\d,]+|\s+N/A){8})\s*$")
_RENAMED: Final = {
    "symbol_error_counter": "symbol_error",
    "link_downed_counter": "link_downed", "vl15dropped": "vl15_dropped", "v_l15_dropped": "vl15_dropped",
    "local_link_integrity_errors": "local_link_integrity_errors",
    "excess_buf_overrun_errors": "excessive_buffer_overrun_errors", "excessive_buf_overrun_errors": "excessive_buffer_overrun_errors",
    "exc_buf_overrun_errors": "excessive_buffer_overrun_errors",
    "link_down": "link_downed", "link_down_counter": "link_downed", "link_error_recovery_counter": "link_error_recovery",
    "symbol_errors": "symbol_error", "link_recovers": "link_error_recovery",
    "rcv_errors": "port_rcv_errors", "rcv_remote_phys_errors": "port_rcv_remote_physical_errors",
    "rcv_sw_relay_errors": "port_rcv_switch_relay_errors", "link_integrity_errors": "local_link_integrity_errors",
    "xmit_discard": "port_xmit_discards", "port_xmit_discard": "port_xmit_discards", "port_rcv_remote_phys_err": "port_rcv_remote_physical_errors", "port_rcv_switch_rel_errors": "port_rcv_switch_relay_errors",
}  # fmt: skip
_CLIPPED: Final = re.compile(r"(?<![a-z])Xmt(?=[A-Z])|(?<=Port)Xmt(?=[A-Z])")
"""As libibmad and ibqueryerrors abbreviate: XmtWait, PortXmtDiscards."""
_STATES: Final = {"4: ACTIVE": 1.0, "5: LinkUp": 1.0}
_CERTAIN: Final = (PERFQUERY, _SYSFS, ERRORS_FOR, _COUNTED, CA, _LINK, SONIC_HEAD, _GROWN, _BER, _BER_TABLE)


@dataclass(frozen=True, slots=True)
class _Row:
    line: int
    counter: str
    value: float
    device: str | None = None
    port: int | None = None
    guid: str | None = None
    kind: str | None = None


_Placed = tuple[_Row, str | None, float | None]


def recognise(given: Input) -> float:
    place = Place()
    lines = [place.bare(line[:_LONGEST]) for line in given.head[:16384].decode("utf-8", "replace").splitlines()]
    if any(pattern.search(line) for line in lines[:200] for pattern in _CERTAIN):
        return 0.96
    if any(line.strip() == "NIC statistics:" for line in lines[:200]):
        return 0.6
    return 0.6 if sum(bool(_ETHTOOL.match(line)) for line in lines[:200]) >= 3 else 0.0


def read(given: Input, options: Options) -> Reading:
    lines = [line[:_LONGEST] for line in given.data().decode("utf-8", "replace").splitlines()]
    rows = list(_rows(lines, options.tz))
    if not rows:
        raise InputError(f"{given.path} names network ports but holds no counter of one")
    return Reading(Source(given.path, FORMAT, len(rows), notes=_notes(lines)), ports=_table(rows))


def canonical(name: str) -> str:
    """A counter's name as sysfs spells it: PortRcvErrors → port_rcv_errors."""
    name = _CLIPPED.sub("Xmit", name)
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
    if snake.startswith(("xmit_", "rcv_")) and snake not in _RENAMED:
        snake = f"port_{snake}"  # libibmad before 2010 left the word out
    return _RENAMED.get(snake, snake)


def _rows(lines: list[str], tz: str | None) -> Iterator[_Placed]:
    """Rows with the host and the moment of their reading."""
    place = Place()
    adapters = _adapters(lines)
    columns: list[str] = []
    for number, raw in enumerate(lines, start=1):
        line = place.bare(raw)
        rows: Iterable[_Row] = ()
        if found := _SYSFS.search(line):
            place.titled()
            rows = _sysfs(number, found, adapters.get(found[1]))
        elif _BER_TABLE.search(line):
            columns = [name.strip() for name in line.split(" : ")]
        elif columns and len(cells := line.split(" : ")) == len(columns):
            rows = _error_rates(number, dict(zip(columns, (c.strip() for c in cells), strict=True)))
        elif found := _MLXLINK.search(line):
            place.titled()
            place.device, place.port = found[1], None
        elif not place.moved(line):
            rows = _infiniband(number, line, place) or _ethernet(number, line, place)
            if not rows:
                place.noted(line, tz)
        if rows:
            place.title = ""  # a banner above counters that it does not place says nothing of what follows them
        yield from ((row, place.host, place.time) for row in rows)
        if line.strip():
            place.above = line


def _infiniband(number: int, line: str, place: Place) -> list[_Row]:
    if found := _GROWN.search(line):
        # ibdiagnet took both readings itself and prints their difference.
        name = canonical(found[3])
        return [_Row(number, name, value, found[1], int(found[2])) for value in (0.0, float(found[4]))]
    if found := _BER.match(line):
        return [_Row(number, f"{found[1].lower()}_ber", float(found[2]), place.device, place.port)]
    if found := _ERRORS.match(line):
        # The row of port ALL is the sum of the others.
        where = (place.device, whole(found[2], bits=32), found[1])
        return [_Row(number, canonical(n), float(v), *where) for n, v in _BRACKET.findall(line) if found[2] != "ALL"]
    if (found := _FIELD.match(line)) and place.device is not None and place.port is not None:
        return list(_state(number, found[1], found[2], place))
    if found := _FABRIC_NODE.match(line):
        place.node, place.is_switch = found[2].strip(), not found[1]
        return []
    if found := _LINK.match(line):
        at, kind = whole(found[2], bits=32), None
        if place.is_switch and found[7]:
            # Ports of a switch to the same sort of node are alike.
            kind = f"{place.node} to {''.join(c for c in found[7] if not c.isdigit()).strip()}"
        own = (place.node, at, found[1], kind)
        active = _Row(number, "active", float(found[4] == "Active"), *own)
        return [_Row(number, "rate", 4 * float(found[3]), *own), active]
    if (found := _DOTTED.match(line)) and not found[1].endswith(("Select", "Select2")):
        return [_Row(number, canonical(found[1]), _count(found[2]), place.device, place.port, place.guid)]
    return []


def _error_rates(number: int, cells: dict[str, str]) -> Iterator[_Row]:
    """A port's row of ibdiagnet's net_dump_ext: bit error rates before and after correction."""
    name, at = cells.get("Node Desc", "").strip('"') or cells.get("GUID", ""), cells.get("#", "")
    port = whole(at, bits=32) if at.isdecimal() else None
    for title, counter in _BER_COLUMNS.items():
        if _RATE.match(cells.get(title, "")):
            yield _Row(number, counter, float(cells[title]), name if port is not None else f"{name} {at}", port)


def _ethernet(number: int, line: str, place: Place) -> list[_Row]:
    if found := _SONIC.match(line):
        cells = [c.replace(",", "") for c in found[2].split()]
        names = [f"{place.direction}_prio{i}_pause" for i in range(len(cells))]
        return [_Row(number, n, float(c), found[1]) for n, c in zip(names, cells, strict=True) if c != "N/A"]
    if found := _ETHTOOL.match(line):
        return [_Row(number, found[1].lower(), float(found[2]), place.device)]
    return []


def _adapters(lines: list[str]) -> dict[str, str]:
    """Adapter → its GUID, as a dump of sysfs tells it anywhere; not where it tells of several hosts."""
    told: dict[str, set[str]] = {}
    for line in lines:
        if found := _NODE_GUID.search(line):
            told.setdefault(found[1], set()).add(f"0x{found[2].replace(':', '')}")
    return {device: min(guids) for device, guids in told.items() if len(guids) == 1}


def _sysfs(number: int, found: re.Match[str], guid: str | None) -> Iterator[_Row]:
    where, name, value = (found[1], whole(found[2], bits=32), guid), found[3], found[4].strip()
    if name in {"state", "phys_state"}:
        yield _Row(number, "active" if name == "state" else "link_up", _STATES.get(value, 0.0), *where)
    elif name == "rate":
        figure = re.match(r"(\d+(?:\.\d*)?)", value)
        if figure:
            yield _Row(number, "rate", float(figure[1]), *where)
    elif value.isdecimal():
        yield _Row(number, canonical(name), float(value), *where)


def _count(text: str) -> float:
    """A counter in decimal or, after 0x, in hexadecimal digits."""
    return float(text) if not text.startswith("0x") else float(int(text, 16)) if len(text) <= 34 else float("inf")


def _state(number: int, field: str, value: str, place: Place) -> Iterator[_Row]:
    where = (place.device, place.port, place.guid, place.model)
    if field == "State":
        yield _Row(number, "active", float(value == "Active"), *where)
    elif field == "Physical state":
        yield _Row(number, "link_up", float(value == "LinkUp"), *where)
        if value == "Disabled":
            yield _Row(number, "disabled", 1.0, *where)
    elif field == "Rate" and value.replace(".", "", 1).isdecimal():
        yield _Row(number, "rate", float(value), *where)


def _table(rows: Iterable[_Placed]) -> pl.DataFrame:
    known = thresholds()
    columns = ("line", "counter", "value", "device", "port", "guid", "kind", "saturated", "host", "time")
    cells = [
        (
            r.line,
            r.counter,
            r.value,
            r.device,
            r.port,
            r.guid,
            r.kind,
            _saturated(known.get(r.counter), r.value),
            host,
            time,
        )
        for r, host, time in rows
    ]
    return port_rows.table(cells, columns)


def _saturated(limit: object, value: float) -> bool:
    top = getattr(limit, "saturates", None)
    return top is not None and value == top


def _notes(lines: list[str]) -> tuple[str, ...]:
    if any("suppressed" in line for line in lines):
        return ("counts are lower bounds: suppressed lines",)
    return ()
