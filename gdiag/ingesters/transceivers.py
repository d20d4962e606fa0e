"""ethtool -m: what a transceiver says of itself: optical power, temperature, voltage, laser bias, their limits and flags (DDM).

Each figure is a counter of `ports`: `module_rx_power` [dBm], `module_tx_power` [dBm], `module_temperature` [°C], `module_voltage` [V],
`module_bias` [mA]; limits end in `_low_alarm_limit` or `_high_warning_limit`, flags in `_low_alarm` or `_high_warning` (1 = on). The
lane of a module with several is the port. Field names as ethtool's sfpdiag.c, qsfp.c and cmis.c print them.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Final

from gdiag.ingesters import console, port_rows
from gdiag.ingesters.port_place import Place
from gdiag.ingesters.reading import Input, Options, Reading
from gdiag.ingesters.values import whole
from gdiag.model import Source

FORMAT: Final = "ethtool-module"

_HEAD: Final = re.compile(rb"(?m)^(?:[A-Za-z][\w.-]*: )?\s*Identifier\s+: 0x\w\w \(")
_PAGE: Final = re.compile(r"^\s*Identifier\s+: 0x\w\w \((.*?)\)")
_LINE: Final = re.compile(r"^\s*([A-Z][\w ,]*?)\s*(?:\((?:Channel|Chan) (\d+)\))?\s*:\s*(.*?)\s*$")
_COMMAND: Final = re.compile(r"ethtool\s+(?:-m|--module-info|--dump-module-eeprom)\s+([\w.@-]+)")
_BARE: Final = re.compile(r"^\W*([a-z][\w.@-]*\d[\w.@-]*)\W*$")
_FIGURES: Final = (
    ("rx_power", r"receiver signal average optical power|receiver signal oma|rcvr signal avg optical power|laser rx power|rx power"),
    ("tx_power", r"laser output power|transmit avg optical power|laser tx power|tx power"),
    ("bias", r"laser (?:tx )?bias current|tx bias"),
    ("temperature", r"module temperature"),
    ("voltage", r"module voltage"),
)  # fmt: skip
_NAME: Final = tuple(
    (figure, re.compile(rf"(?:{words})(?: (high|low) (alarm|warning)( threshold)?)?", re.IGNORECASE))
    for figure, words in _FIGURES
)
_VALUE: Final = re.compile(r"(?:[\d.]+ mW / )?([+-]?(?:\d+(?:\.\d+)?|inf)) (?:dBm|degrees C|V|mA)\b")
_FLAG: Final = {"On": 1.0, "Off": 0.0}
DARK: Final = -40.0
"""What a receiver without light shows [dBm]: the power of 0.0001 mW, the smallest step of its scale."""


def recognise(given: Input) -> float:
    return 0.9 if _HEAD.search(given.head[:16384]) else 0.0


def read(given: Input, options: Options) -> Reading:
    """Figures, limits and flags of every module; a page without them is read and said to hold none."""
    place = Place()
    rows: list[tuple[int, str | None, float | None, str | None, int | None, str, float]] = []
    pages: list[list[str]] = []
    unnamed: Counter[tuple[str | None, float | None]] = Counter()
    above: str | None = None
    for number, raw in console.lines_of(given).select("line", "text").iter_rows():
        line = place.bare(raw[:1024])
        if found := _PAGE.match(line):
            place.device, above = place.interface(above), None
            if place.device is None:
                # Pages of one moment without a name are different modules, not readings of one.
                unnamed[place.host, place.time] += 1
                place.device = f"page {n}" if (n := unnamed[place.host, place.time]) > 1 else None
            pages.append([found[1], place.device or "", ""])
        elif (figure := _figure(line)) is not None:
            if above or place.title:  # a page whose first lines are lost
                place.device, above = place.interface(above), None
            lane, name, value = figure
            rows.append((number, place.host, place.time, place.device, lane, name, value))
            if pages:
                pages[-1][2] = "figures"
        else:
            noted = place.noted(line, options.tz)
            if found := _COMMAND.search(line) or (None if noted else _BARE.match(line)):
                above = found[1]
    columns = ("line", "host", "time", "device", "port", "counter", "value")
    table = port_rows.table(rows, columns) if rows else None
    return Reading(Source(given.path, FORMAT, max(len(rows), len(pages)), notes=_said(pages, rows)), ports=table)


def _figure(line: str) -> tuple[int | None, str, float] | None:
    """Lane, counter and value of a line."""
    found = _LINE.match(line)
    if found is None:
        return None
    for figure, pattern in _NAME:
        named = pattern.fullmatch(found[1])
        if named is None:
            continue
        suffix = f"_{named[1].lower()}_{named[2].lower()}" if named[1] else ""
        if suffix and not named[3]:
            value = _FLAG.get(found[3])
        else:
            shown = _VALUE.match(found[3])
            value = (
                None if shown is None else max(float(shown[1]), DARK) if figure.endswith("power") else float(shown[1])
            )
        if value is None:
            return None
        lane = whole(found[2], bits=31) if found[2] else None
        return lane, f"module_{figure}{suffix}{'_limit' if named[3] else ''}", value
    return None


def _said(
    pages: list[list[str]], rows: list[tuple[int, str | None, float | None, str | None, int | None, str, float]]
) -> tuple[str, ...]:
    notes = []
    power = [v for *_, name, v in rows if name == "module_rx_power"]
    on = sum(v == 1 and not name.endswith("_limit") for *_, name, v in rows if name.endswith(("_alarm", "_warning")))
    with_figures = [p for p in pages if p[2]]
    if with_figures:
        kinds = ", ".join(dict.fromkeys(kind for kind, _, _ in with_figures))
        light = (
            f", received power {min(power):g}{f' to {max(power):g}' if len(set(power)) > 1 else ''} dBm"
            if power
            else ""
        )
        several = f"{len(with_figures)} transceivers" if len(with_figures) > 1 else "1 transceiver"
        notes.append(f"{several} ({kinds}){light}, {on} alarm or warning flags on")
    for kind, device, figures in pages:
        if not figures:
            notes.append(
                f"{f'{device}: ' if device else ''}the {kind} module gives no diagnostics (DDM): optical power cannot be judged"
            )
    return tuple(notes[:20])
