"""nvidia-smi as people see it: -q text and the summary table, once or in a loop."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

import polars as pl

from gdiag.errors import InputError
from gdiag.ingesters import console, nvlink_lines, smi_tree, telemetry
from gdiag.ingesters.reading import Input, Options, Reading
from gdiag.ingesters.values import whole
from gdiag.model import Source

FORMAT = "nvidia-smi-text"

_LOG: Final = re.compile(rb"=NVSMI LOG=")
_TABLE: Final = re.compile(rb"\| NVIDIA-SMI [\d.]+")
_STAMP: Final = re.compile(r"^((?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) \w{3} +\d+ \d\d:\d\d:\d\d \d{4})\s*$")
_NAME_ROW: Final = re.compile(
    r"^\|\s+(\d+)\s+(\S.*?)\s+(?:On|Off|N/A|WDDM|TCC|MCDM)\s*\|\s*([0-9A-Fa-f:.]{12,16})\s+\S+\s*\|\s*(\S+)\s*\|"
)
_VALUE_ROW: Final = re.compile(
    r"^\|\s*(N/A|ERR!|\d+%)\s+(N/A|ERR!|\d+C)\s+(?:\S+)\s+(N/A|ERR!|\d+W)\s*/\s*(N/A|\d+W)\s*\|\s*(\d+MiB|N/A)\s*/\s*(\d+MiB|N/A)\s*\|\s*(N/A|\d+%)"
)


def recognise(given: Input) -> float:
    return 0.95 if _LOG.search(given.head) or _TABLE.search(given.head) else 0.0


def read(given: Input, options: Options) -> Reading:
    """Samples of the dump or table."""
    lines = console.lines_of(given)["text"].to_list()
    reading = (_dump if _LOG.search(given.head) else _table)(given, options, lines)
    return _with_links(reading, lines, options) if nvlink_lines.among(given.data()) else reading


def _with_links(reading: Reading, lines: list[str], options: Options) -> Reading:
    """The reading with the matrix and the links that stand below the dump or table."""
    found = nvlink_lines.parse(dict(enumerate(lines, 1)), options.tz)
    facts = [part for part in (reading.facts, nvlink_lines.facts(found)) if part is not None]
    source = replace(reading.source, notes=(*reading.source.notes, *nvlink_lines.said(found)))
    return replace(
        reading,
        source=source,
        ports=nvlink_lines.ports(found),
        facts=pl.concat(facts, how="diagonal") if facts else None,
    )


def _dump(given: Input, options: Options, lines: list[str]) -> Reading:
    """-q: two levels of indentation and more, 'Name : value'; a GPU starts at 'GPU <bus id>'."""
    rows: list[dict[str, object]] = []
    limits: dict[str, dict[str, str]] = {}
    tree: dict[str, str] = {}
    start, stamp = 0, ""
    stack: list[tuple[int, str]] = []

    def close() -> None:
        if tree:
            row = smi_tree.row(tree)
            rows.append(row | {"line": start, "stamp": stamp})
            if row.get("model"):
                limits.setdefault(str(row["model"]), {}).update(smi_tree.limits(tree))
            tree.clear()

    for number, line in enumerate(lines, 1):
        if found := re.match(r"^GPU ([0-9A-Fa-f]{4,8}:\S+)", line):
            close()
            start, stack = number, []
            tree["pci/bus_id"] = found[1]
            continue
        name, colon, value = line.partition(" : ")
        if not line.startswith(" "):
            if name.strip() == "Timestamp":
                close()
                stamp = value.strip()
            continue
        depth = len(line) - len(line.lstrip())
        while stack and stack[-1][0] >= depth:
            stack.pop()
        if colon and not (stack and stack[0][1].startswith("MIG Device")):
            tree[smi_tree.path(*(n for _, n in stack), name.strip())] = value
        stack.append((depth, name.strip()))
    close()
    return _reading(given, options, rows, "nvidia-smi -q", smi_tree.facts(limits))


def _table(given: Input, options: Options, lines: list[str]) -> Reading:
    rows: list[dict[str, object]] = []
    stamp, name = "", None
    for number, line in enumerate(lines, 1):
        if found := _STAMP.match(line.strip()):
            stamp = found[1]
        elif found := _NAME_ROW.match(line):
            name = found
        elif name is not None and (values := _VALUE_ROW.match(line)):
            cells = dict(
                zip(
                    ("fan", "temperature", "power", "power_limit", "memory_used", "memory_total", "utilization"),
                    values.groups(),
                    strict=True,
                )
            )
            row: dict[str, object] = {
                "line": number - 1, "stamp": stamp, "gpu": whole(name[1], bits=32), "model": name[2].rstrip(". "), "bus_id": telemetry.bus(name[3]),
            }  # fmt: skip
            row |= {column: value for column, text in cells.items() if (value := _cell(text)) is not None}
            if (errors := _cell(name[4])) is not None:
                row["ecc_uncorrected"] = errors
            rows.append(row)
            name = None
    return _reading(given, options, rows, "the nvidia-smi table", None)


def _cell(text: str) -> float | None:
    found = re.fullmatch(r"(\d+)(%|C|W|MiB|)", text)
    return float(found[1]) * telemetry.UNITS[found[2]] if found else None


def _reading(
    given: Input, options: Options, rows: list[dict[str, object]], form: str, facts: pl.DataFrame | None
) -> Reading:
    if not rows:
        raise InputError(f"{given.path} looks like {form} but holds no GPU")
    times, known = telemetry.clock(pl.Series("stamp", [str(r.pop("stamp", "")) for r in rows]), options.tz)
    timed = times.count() > 0
    for row, time in zip(rows, times, strict=True):
        row |= {"time": time, "zone_known": known} if timed else {}
    table = smi_tree.frame(rows)
    notes = [] if timed else ["no timestamp: nothing can be placed in time"]
    if timed and not known:
        notes.append("local time without a zone")
    columns = {c: f"{form}: {c}" for c in table.columns if c not in ("line", "zone_known")}
    if "reasons" in columns:
        columns["reasons"] = "clocks_event_reasons.active"
    return Reading(
        Source(given.path, FORMAT, table.height, columns=columns, notes=tuple(notes)), gpus=table, facts=facts
    )
