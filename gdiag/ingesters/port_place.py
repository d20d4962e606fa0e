"""Which host, device and port the lines of a counter dump belong to, and when they were read.

Dumps are made by loops: `date; hostname; perfquery`, `pdsh -w … perfquery`, a banner per host, a shell prompt. The tools
themselves print neither host nor time.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

import polars as pl

from gdiag.ingesters import prefixes
from gdiag.ingesters.values import whole

PERFQUERY: Final = re.compile(
    r"^# (?:Port (?:extended )?counters|PortRcvErrorDetails counters|\w+ counters): Lid (\d+) port (\d+)"
)
ERRORS_FOR: Final = re.compile(r'^Errors for (?:(0x[0-9a-f]+) )?"([^"]+)"')
CA: Final = re.compile(r"^CA '([\w.-]+)'")
SONIC_HEAD: Final = re.compile(r"Port (Tx|Rx)\s+PFC0\s+PFC1")
_MODEL: Final = re.compile(r"^\s+CA type: (\S+)")
_NODE: Final = re.compile(r"^\s+Node GUID: (0x[0-9a-f]+)")
_PORT: Final = re.compile(r"^\s+Port (\d+):")
_INTERFACE: Final = re.compile(r"^\s*NIC statistics(?: for ([\w.@-]+))?:?\s*$")
_NAMED: Final = re.compile(r"(?:ethtool\s+(?:-S|--statistics)\s+|^\W*)([A-Za-z][\w.@-]*)\W*$")
_PREFIX: Final = re.compile(r"^([A-Za-z][\w.-]*): ")
"""A host in front of every line, as pdsh and clush print it."""
_QUOTED: Final = re.compile(r"^(?:> ?|// ?)+")
"""What mail and comments put in front of every line."""
_TOOL: Final = re.compile(
    r"# (?:Port|\w+ counters)|\w+:\.{2,}|/sys/class/infiniband|CA '|Errors for|\s*NIC statistics|"
    r"\s+(?:\w+: \d|CA type|Port \d|State:|Physical state:|Rate:)|"
    r"GPU \d+: |\s*Link \d+[:,]|\s*GPU\d+\s+(?:GPU|NIC|X\s|NV\d|SYS|NODE|P[HX]B|PIX|CPU|NUMA)|\s*Identifier\s+: 0x"
)
"""Beginnings of lines that only a tool prints: what stands in front is a host; in front of a date it may be a label."""
_HOST: Final = re.compile(
    r"^\W*(?:host(?:name)?|node)\s*[:=]?\s+([A-Za-z][\w.-]*)\W*$|^\[?\w+@([\w-]+)[\w.]*[: ]", re.IGNORECASE
)
_BANNER: Final = re.compile(r"^([=#*-])\1+ *([A-Za-z][\w.-]*)[: ]*(?:\1*)\s*$")
_CLOCK: Final = re.compile(r"\d\d:\d\d:\d\d")
_DATE: Final = re.compile(
    r"^\W*(?:\w[\w.-]*[:=] ?)?(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)\w*,? (?:(\w{3}) +(\d+)|(\d+) (\w{3}) (\d{4})),? (\d\d:\d\d:\d\d)"
    r"(?: ([AP]M))?(?: ([A-Z]{1,5}|[+-]\d{2,4}))?(?: (\d{4}))?\W*$"
)
"""`date` in its usual forms: Mon Nov 30 02:16:40 UTC 2026, Mon 30 Nov 2026 02:16:40 AM UTC."""
_EPOCH: Final = re.compile(r"^\D{0,14}\b(1[0-9]\d{8}|2[01]\d{8})(\.\d+)?\W*$")


@dataclass(slots=True)
class Place:
    """The port that the lines read last belong to, and the moment of the reading."""

    host: str | None = None
    device: str | None = None
    port: int | None = None
    guid: str | None = None
    time: float | None = None
    """Unix seconds; a local clock is read as UTC where no zone is given."""
    model: str | None = None
    """Adapter type as ibstat prints it."""
    node: str | None = None
    """Node whose ports iblinkinfo lists."""
    is_switch: bool = False
    direction: str = "tx"
    above: str = ""
    """The line before."""
    title: str = ""
    """Name in the last banner, until it is known what it names."""
    collected: set[str] = field(default_factory=set)
    """Hosts that a collector printed in front of lines."""

    def bare(self, line: str) -> str:
        """The line without the host that a collector printed in front of it, which is remembered.

        A host that stood in front of a tool's line stands in front of all its lines.
        """
        line = _QUOTED.sub("", line)
        found = _PREFIX.match(line)
        if found is None or (found[1] not in self.collected and not _TOOL.match(line, found.end())):
            return line
        self.collected.add(found[1])
        self.host = found[1]
        return line[found.end() :]

    def moved(self, line: str) -> bool:
        """Whether the line says which port follows."""
        if found := PERFQUERY.match(line):
            self.titled()
            self.device, self.port, self.guid = f"lid {found[1]}", whole(found[2], bits=32), None
        elif found := ERRORS_FOR.match(line):
            self.device = found[2]
        elif found := CA.match(line):
            self.titled()
            self.device, self.port, self.guid, self.model = found[1], None, None, None
        elif found := _NODE.match(line):
            self.guid = found[1]
        elif found := _MODEL.match(line):
            self.model = f"adapter {found[1]}"
        elif found := _PORT.match(line):
            self.port = whole(found[1], bits=32)
        elif found := _INTERFACE.match(line):
            named = _NAMED.search(self.above)
            self.device = self.interface(found[1] or (named[1] if named else None))
            self.port, self.guid = None, None
        elif found := SONIC_HEAD.search(line):
            self.direction = found[1].lower()
        else:
            return False
        return True

    def titled(self) -> None:
        """A banner above a port is its host."""
        if self.title:
            self.host, self.title = self.title, ""

    def interface(self, name: str | None) -> str | None:
        """The interface whose lines begin: the one named beside them, else the banner's; another name there is its host."""
        device = name or self.title or None
        if self.title != device:
            self.titled()
        self.title = ""
        return device

    def noted(self, line: str, tz: str | None) -> bool:
        """Whether the line says on which host or when the counters below it were read."""
        if len(line) > 120 or not line.strip():
            return False
        if found := _BANNER.match(line):
            self.titled()  # of two banners above one port the outer is its host
            self.title = found[2]
            return True
        if found := _HOST.match(line):
            self.host = found[1] or found[2]
        moment = clock(line, tz)
        if moment is not None:
            self.time = moment
        return found is not None or moment is not None


def clock(line: str, tz: str | None) -> float | None:
    """Unix seconds that a line holds: epoch seconds alone, the output of `date`, or a date and time in figures."""
    if found := _EPOCH.match(line):
        return float(found[1] + (found[2] or ""))
    if not _CLOCK.search(line):
        return None
    if found := _DATE.match(line):
        month, day, year = found[1] or found[4], found[2] or found[3], found[5] or found[9]
        form = "%d %b %Y %I:%M:%S %p" if found[7] else "%d %b %Y %H:%M:%S"
        try:
            moment = datetime.strptime(f"{day} {month} {year} {found[6]} {found[7] or ''}".strip(), form)
        except ValueError:
            return None
        return _unix(moment, found[8] or "", tz)
    value = prefixes.clocks(pl.Series([line]), tz)[0]
    return float(value) if value is not None else None


def _unix(moment: datetime, zone: str, tz: str | None) -> float:
    """A local moment in the zone printed beside it, in `tz` where that is no offset that everybody knows."""
    if zone[:1] in {"+", "-"}:
        hours, minutes = int(zone[1:3]), int(zone[3:5] or 0)
        east = timedelta(hours=hours, minutes=minutes) * (1 if zone[0] == "+" else -1)
        return (moment.replace(tzinfo=UTC) - east).timestamp()
    place = 0 if zone in {"UTC", "GMT", "Z"} else prefixes.zone_minutes(tz)
    if isinstance(place, int):
        return (moment.replace(tzinfo=UTC) - timedelta(minutes=place)).timestamp()
    return moment.replace(tzinfo=place).timestamp()
