"""AMD GPUs: rocm-smi as JSON or CSV, amd-smi metric as JSON or CSV. The junction (hotspot) temperature is judged, not the edge."""

from __future__ import annotations

import json
import re
from typing import Final

import polars as pl

from gdiag.errors import InputError
from gdiag.ingesters import console, json_salvage, telemetry
from gdiag.ingesters.reading import Input, Options, Reading
from gdiag.ingesters.values import whole
from gdiag.model import Source

FORMAT = "amd-smi"

_NAMES: Final[tuple[tuple[str, str, str], ...]] = (
    ("temperature", r"temperature \(sensor junction\) \(c\)|hotspot(_temperature)?|junction", "C"),
    ("temperature", r"temperature \(sensor edge\) \(c\)|edge(_temperature)?", "C"),
    ("memory_temperature", r"temperature \(sensor memory\) \(c\)|mem(_temperature)?", "C"),
    ("power", r"(average|current socket) graphics package power \(w\)|average_socket_power|socket_power|current_socket_power", "W"),
    ("power_limit", r"max graphics package power \(w\)|power_limit|power_cap", "W"),
    ("utilization", r"gpu use \(%\)|gfx(_activity)?|gpu_util", "%"),
    ("clock_sm", r"sclk clock speed:?|gfx_0_clk|gfx_clock|gfx_clk", "MHz"),
    ("clock_memory", r"mclk clock speed:?|mem_0_clk|mem_clock|mem_clk", "MHz"),
    ("memory_used", r"used_vram", "MiB"),
    ("memory_total", r"total_vram", "MiB"),
    ("memory_used", r"vram total used memory \(b\)", "B"),
    ("memory_total", r"vram total memory \(b\)", "B"),
    ("fan", r"fan speed \(%\)", "%"),
    ("uuid", r"unique id", ""),
    ("bus_id", r"pci bus", ""),
    ("model", r"card series|device name|market_name", ""),
)  # fmt: skip
"""Canonical column, its names (best first), unit. rocm-smi renamed keys between 5.7 and 6.1."""
_JSON: Final = re.compile(
    rb'^\s*\{\s*"card\d+"\s*:|^\s*(?:\{\s*"gpu_data"\s*:\s*)?(?:\[\s*)?\{\s*"gpu"\s*:\s*\d+\s*,.{0,4096}?"(?:gfx_activity|socket_power|hotspot)"',
    re.DOTALL,
)
_LIST: Final = re.compile(r'\{\s*"gpu_data"\s*:\s*\[\s*(?=\{\s*"gpu")')
_CARD: Final = re.compile(r'"(card\d+)"\s*:\s*\{')
_NEXT: Final = re.compile(r'\{\s*"(?:card\d+|gpu|gpu_data)"\s*:')
_PAIR: Final = re.compile(r'"([^"\n]{1,200})"\s*:\s*(?:"([^"\n]{0,200})"|(-?\d+(?:\.\d+)?)(?=\s*[,}\n]))')
_CSV: Final = re.compile(
    rb"(?m)^device,.*Temperature \(Sensor|^(?:timestamp,)?gpu,.*(?:gfx_activity|socket_power|hotspot)"
)


def recognise(given: Input) -> float:
    if _JSON.search(given.head):
        return 0.97
    return 0.97 if _CSV.search(given.head[:8192]) else 0.0


def read(given: Input, options: Options) -> Reading:
    """Samples of all cards; of damaged JSON what is complete.

    Raises:
        InputError: no card has a value.
    """
    bad: list[tuple[int, str, str]] = []
    cards = _from_json(given, bad) if _JSON.search(given.head) else _from_csv(given, bad)
    rows: list[dict[str, object]] = []
    columns: dict[str, str] = {}
    for line, card in cards:
        row, named = _row(card)
        columns |= named
        if len(row) > 1:
            rows.append(row | {"line": line})
    if not rows:
        raise InputError(f"{given.path} is AMD telemetry without a value of a GPU")
    table = pl.DataFrame(rows, infer_schema_length=None)
    notes = []
    if "stamp" in table.columns:
        times, known = telemetry.clock(table["stamp"], options.tz)
        table = table.with_columns(times.alias("time"), pl.lit(known).alias("zone_known"))
    else:
        notes.append("no timestamp: nothing can be placed in time")
    if host := telemetry.host_in_name(given.path):
        table = table.with_columns(pl.lit(host).alias("host"))
    return Reading(
        Source(given.path, FORMAT, table.height, len(bad), columns, tuple(notes)), gpus=telemetry.canonical(table),
        rejects=telemetry.rejects(bad) if bad else None,
    )  # fmt: skip


def _from_json(given: Input, bad: list[tuple[int, str, str]]) -> list[tuple[int, dict[str, str]]]:
    """Cards of one document, or of several one after another as a loop prints them; damaged ones are added to `bad`."""
    text = given.data().decode("utf-8", "replace")
    decoder = json.JSONDecoder()
    found: list[tuple[int, dict[str, str]]] = []
    at = 0
    while (at := text.find("{", at)) >= 0:
        line = text.count("\n", 0, at) + 1
        try:
            document, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError) as error:
            if opened := _LIST.match(text, at):
                at = opened.end()  # Its GPUs are read one by one, so that only the damaged one is cut.
                continue
            again = _NEXT.search(text, at + 1)
            end = again.start() if again else len(text)
            damage = min(end, error.pos if isinstance(error, json.JSONDecodeError) else end)
            document = _complete(text[at:end], damage - at)
            bad.append((line, f"damaged JSON: {_count(document)} complete values of it are kept", text[at:end].strip()))
        for name, values in document.items() if isinstance(document, dict) else ():
            if re.fullmatch(r"card\d+", name) and isinstance(values, dict):
                plain = {str(k): str(v) for k, v in values.items() if not isinstance(v, dict | list)}
                found.append((line, {"device": name} | plain))
        several = document.get("gpu_data", [document]) if isinstance(document, dict) else []
        found += [(line, _leaves(own)) for own in several if isinstance(own, dict) and isinstance(own.get("gpu"), int)]
        at = max(end, at + 1)
    return found


def _leaves(record: dict[str, object], above: str = "", depth: int = 0) -> dict[str, str]:
    """Values of amd-smi's tree by the name of their leaf, clocks by that of their domain: gfx_0_clk."""
    found: dict[str, str] = {}
    for name, value in record.items():
        if isinstance(value, dict) and "value" in value:
            found[f"{above}_{name}" if name == "clk" else name] = f"{value['value']} {value.get('unit', '')}".strip()
        elif isinstance(value, dict) and depth < 6:
            found |= _leaves(value, name, depth + 1)
        elif not isinstance(value, dict | list):
            found[name] = str(value)
    return found


def _complete(text: str, damage: int) -> dict[str, object]:
    """The values of a damaged document that are written out to their end: by card, or a GPU's tree up to the damage."""
    starts = list(_CARD.finditer(text))
    if not starts:
        tree, _ = json_salvage.before(text, damage)
        return tree if isinstance(tree, dict) else {}
    cards: dict[str, object] = {}
    for i, start in enumerate(starts):
        part = text[start.end() : starts[i + 1].start() if i + 1 < len(starts) else len(text)]
        cards[start[1]] = {name: word or figure for name, word, figure in _PAIR.findall(part)}
    return cards


def _count(document: dict[str, object]) -> int:
    """Values of the cards, or of the tree of a GPU."""
    if "gpu" in document:
        return len(_leaves(document)) - 1
    return sum(len(values) for values in document.values() if isinstance(values, dict))


def _from_csv(given: Input, bad: list[tuple[int, str, str]]) -> list[tuple[int, dict[str, str]]]:
    """Rows under the last header; what does not fit it is added to `bad`."""
    found: list[tuple[int, dict[str, str]]] = []
    header: list[str] = []
    for number, line in console.lines_of(given).select("line", "text").iter_rows():
        cells = [c.strip() for c in line.split(",")]
        if cells[0].lower() in ("device", "timestamp", "gpu") and len(cells) > 1:
            header = cells
        elif line.strip() and header:
            if len(cells) != len(header):
                bad.append((number, f"not {len(header)} cells as in the header", line))
            else:
                found.append((number, dict(zip(header, cells, strict=True))))
    return found


def _row(card: dict[str, str]) -> tuple[dict[str, object], dict[str, str]]:
    row: dict[str, object] = {}
    named: dict[str, str] = {}
    lower = {k.lower().strip(): (k, v) for k, v in card.items()}
    for key in ("device", "gpu"):
        if key in lower and (found := re.search(r"(\d+)$", lower[key][1])):
            row["gpu"] = whole(found[1], bits=32)
    if "timestamp" in lower:
        row["stamp"] = lower["timestamp"][1]
    for column, pattern, unit in _NAMES:
        if column in row:
            continue
        for key, (printed, value) in lower.items():
            if re.fullmatch(pattern, key) and value.strip() not in telemetry.ABSENT:
                parsed = value.strip() if not unit else _number(value, unit)
                if parsed is not None:
                    row[column] = telemetry.bus(str(parsed)) if column == "bus_id" else parsed
                    named[column] = printed
                    break
    return row, named


def _number(text: str, unit: str) -> float | None:
    found = re.fullmatch(r"\(?([+-]?\d+(?:\.\d+)?)\s*(Mhz|MHz|W|%|C|MB)?\)?", text.strip())
    return float(found[1]) * telemetry.UNITS[unit] if found else None
