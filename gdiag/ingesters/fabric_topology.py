"""ibnetdiscover: which port of which node is joined to which, at what width and speed; the full text and one line per link (-p).

Each end of a link is a port with its rate, its other end (`peer`) and its kind: links between nodes of the same kinds are
alike. A node's kind is its type, its device id where the text gives it and its name without figures; switches that hosts
are joined to are leaves, the others spines. Facts say the cable of each LID and GUID, for counters beside it that name
no host.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from typing import Final

import polars as pl

from gdiag.errors import InputError
from gdiag.ingesters import port_rows
from gdiag.ingesters.reading import Input, Options, Reading
from gdiag.ingesters.values import whole
from gdiag.model import Source

FORMAT: Final = "ibnetdiscover"
_LONGEST: Final = 1 << 10
"""Characters of a line that are looked at."""
_LANE: Final = {
    "SDR": 2.5, "DDR": 5.0, "QDR": 10.0, "FDR10": 10.0, "FDR": 14.0, "EDR": 25.0, "HDR": 50.0, "NDR": 100.0, "XDR": 200.0,
}  # fmt: skip
"""Nominal rate of one lane [Gb/s] (InfiniBand Trade Association roadmap)."""
_LINE: Final = re.compile(
    r"^\s*(CA|SW|RT)\s+(\d+)\s+(\d+)\s+(0x[0-9a-fA-F]+)\s+(\d+)x\s+(\S+)"
    r"(?:\s+-\s+(CA|SW|RT)\s+(\d+)\s+(\d+)\s+(0x[0-9a-fA-F]+)\s+\(\s*'(.*?)'\s+-\s+'(.*)'\s*\)|\s+'(.*)'\s*$)"
)
_NODE: Final = re.compile(r'^(Switch|Ca|Rt)\s+\d+\s+"[SHR]-([0-9a-fA-F]+)"\s*#\s*"([^"]*)"(?:.*\blid (\d+))?')
_PORT: Final = re.compile(
    r'^\[(\d+)\](?:\([0-9a-fA-F]+\))?\s+"([SHR])-([0-9a-fA-F]+)"\[(\d+)\](?:\([0-9a-fA-F]+\))?\s*#\s*'
    r'(?:lid (\d+) lmc \d+ )?"([^"]*)"(?: lid (\d+))?(?: (\d+)x(\w+|\?\?\?))?'
)
_DEVICE: Final = re.compile(r"^devid=(0x[0-9a-fA-F]+)")
_TYPES: Final = {"Switch": "SW", "Ca": "CA", "Rt": "RT", "S": "SW", "H": "CA", "R": "RT"}


@dataclass(frozen=True, slots=True)
class _End:
    """A port as one line shows it, and what it is joined to."""

    line: int
    type: str
    name: str
    guid: str
    port: int | None
    lid: str | None
    width: int | None
    speed: str | None
    peer_type: str | None = None
    peer_name: str = ""
    peer_guid: str = ""
    peer_port: int | None = None
    peer_lid: str | None = None

    @property
    def rate(self) -> float | None:
        """Gb/s, None where width or speed is not known."""
        lane = _LANE.get(self.speed or "")
        return self.width * lane if self.width and lane else None


def recognise(given: Input) -> float:
    lines = [line[:_LONGEST] for line in given.head[:32768].decode("utf-8", "replace").splitlines()]
    if any(_LINE.match(line) for line in lines):
        return 0.97
    return 0.97 if any(_NODE.match(line) for line in lines) and any(_PORT.match(line) for line in lines) else 0.0


def read(given: Input, options: Options) -> Reading:  # noqa: ARG001 - nothing to map
    """Rows of `ports` (rate [Gb/s] and active of every joined port) and the cables as facts.

    Raises:
        InputError: no link can be read.
    """
    ends, devices = _ends([line[:_LONGEST] for line in given.data().decode("utf-8", "replace").splitlines()])
    joined = [end for end in ends if end.peer_type]
    if not joined:
        raise InputError(f"{given.path} is the topology of ibnetdiscover but shows no link")
    facts = [(end.line, "cable", name, _cable(end)) for end in joined for name in _names(end)]
    named = [end for end in ends if end.name]
    facts += [(end.line, "node", end.guid, end.name) for end in named]
    facts += [(end.line, "node", f"lid {end.lid}", end.name) for end in named if end.lid]
    schema = {"line": pl.Int64, "scope": pl.String, "key": pl.String, "value": pl.String}
    source = Source(given.path, FORMAT, len(joined), notes=_notes(ends, joined))
    table = pl.DataFrame(facts, schema=schema, orient="row").unique(["scope", "key"], keep="first", maintain_order=True)
    return Reading(source, ports=_table(ends, devices), facts=table.with_columns(section=pl.lit(None, pl.Int32)))


def _ends(lines: list[str]) -> tuple[list[_End], dict[str, str]]:
    """Ports in order, and the device id of each node's GUID."""
    ends: list[_End] = []
    devices: dict[str, str] = {}
    device, node = "", None
    for number, line in enumerate(lines, start=1):
        if m := _LINE.match(line):
            ends.append(_End(
                number, m[1], m[11] or m[13] or "", _guid(m[4]), whole(m[3], bits=31), m[2], int(m[5][:4]), m[6],
                m[7], m[12] or "", _guid(m[10] or ""), whole(m[9], bits=31) if m[9] else None, m[8],
            ))  # fmt: skip
        elif m := _DEVICE.match(line):
            device = m[1].lower()
        elif m := _NODE.match(line):
            node = (_TYPES[m[1]], _guid(m[2]), m[3], m[4])
            devices[node[1]] = device
        elif node is not None and (m := _PORT.match(line)):
            kind, guid, name, lid = node
            ends.append(_End(
                number, kind, name, guid, whole(m[1], bits=31), m[5] or lid, int(m[8][:4]) if m[8] else None, m[9],
                _TYPES[m[2]], m[6], _guid(m[3]), whole(m[4], bits=31), m[7],
            ))  # fmt: skip
    return ends, devices


def _guid(text: str) -> str:
    """A GUID as the tools print it in other places: without leading zeros."""
    return "0x" + text.lower().removeprefix("0x").lstrip("0")


def _names(end: _End) -> list[str]:
    """What counters beside the topology may call the port."""
    port = f"port {end.port}"
    return [*([f"lid {end.lid} {port}"] if end.lid else []), f"{end.guid} {port}"]


def _cable(end: _End) -> str:
    return f"{end.name} port {end.port} – {end.peer_name} port {end.peer_port}"


def _table(ends: list[_End], devices: dict[str, str]) -> pl.DataFrame:
    """Each link once a reading, from the end whose line came first; ports whose speed is last ??? as `unsettled`.

    Outputs one after the other are readings: each shows an end once.
    """
    joined = [end for end in ends if end.peer_type]
    leaves = {end.guid for end in joined if end.type == "SW" and _is_host(end.peer_type, end.peer_name)}
    leaves |= {end.peer_guid for end in joined if end.peer_type == "SW" and _is_host(end.type, end.name)}
    shown: dict[frozenset[tuple[str, int | None]], tuple[str, int | None]] = {}
    rows: list[tuple[int, str, int | None, str, str | None, str | None, str, float]] = []
    for end in joined:
        both = frozenset(((end.guid, end.port), (end.peer_guid, end.peer_port)))
        if shown.setdefault(both, (end.guid, end.port)) != (end.guid, end.port):
            continue
        other = replace(end, type=end.peer_type or "", name=end.peer_name, guid=end.peer_guid)
        kind = " to ".join(sorted(_kind(e, devices, leaves) for e in (end, other)))
        own = (end.line, end.name, end.port, end.guid, f"{end.peer_name} port {end.peer_port}", kind)
        if end.rate is not None:
            rows.append((*own, "rate", end.rate))
        rows.append((*own, "active", 1.0))
    rows += [
        (end.line, end.name, end.port, end.guid, None, None, "unsettled", 1.0)
        for end in {(end.guid, end.port): end for end in ends}.values()
        if not end.peer_type and end.speed == "???"
    ]
    return port_rows.table(rows, ("line", "device", "port", "guid", "peer", "kind", "counter", "value"))


def _is_host(kind: str | None, name: str) -> bool:
    return kind == "CA" and "Aggregation Node" not in name


def _kind(end: _End, devices: dict[str, str], leaves: set[str]) -> str:
    """What sort of node an end is on."""
    sort = "host" if end.type == "CA" else "router" if end.type == "RT" else "leaf" if end.guid in leaves else "spine"
    stem = "".join(c for c in end.name.partition(":")[0] if not c.isdigit()).strip() if end.type == "CA" else ""
    return " ".join(filter(None, [sort, stem, devices.get(end.guid, "")]))


def _notes(ends: list[_End], joined: list[_End]) -> tuple[str, ...]:
    nodes = {(end.type, end.guid) for end in ends} | {(end.peer_type, end.peer_guid) for end in joined}
    counts = Counter(kind for kind, _ in nodes)
    rates = Counter(f"{end.width}x {end.speed}" for end in joined)
    links = {frozenset(((e.guid, e.port), (e.peer_guid, e.peer_port))) for e in joined}
    words = [f"{counts['SW']} switches, {counts['CA']} adapters, {len(links)} links ({', '.join(rates)})"]
    alone = [end for end in ends if not end.peer_type]
    if alone:
        some = ", ".join(f"{e.name} port {e.port} ({e.width}x {e.speed})" for e in alone[:3])
        more = f" and {len(alone) - 3} more" if len(alone) > 3 else ""
        words.append(f"ports that show no other end, unused or down: {some}{more}")
    return tuple(words)
