"""Columns of GPU telemetry in CSV form: names as nvidia-smi and others spell them → canonical names and units."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from gdiag.ingesters import smi_values, telemetry

_CELL: Final = r"[A-Za-z_][\w. \t%()/-]*(?:\[[^\],]*\][ \t]*)?"
HEADER: Final = rf"^\s*{_CELL}(?:,\s*{_CELL})*,?\s*$"
"""Shape of a header line: names, each with a unit in brackets or parentheses, no values.

Blanks before a comma belong to the cell alone: were there two ways to read them, a line of many cells would take for ever.
"""

NUMERIC: Final[dict[str, tuple[str, ...]]] = {
    "temperature": ("temperature.gpu", "temperature", "temp", "gpu_temp", "temperature_gpu", "gpu_temperature", "gputemp"),
    "memory_temperature": ("temperature.memory", "memory_temp", "temperature_memory", "mem_temp", "hbm_temp"),
    "temperature_margin": ("temperature.gpu.tlimit",),
    "power": (
        "power.draw", "power.draw.instant", "power.draw.average", "gpu.power.draw.instant", "gpu.power.draw.average",
        "power", "power_draw", "gpu_power", "power_usage",
    ),
    "power_limit": (
        "enforced.power.limit", "gpu.power.current_limit", "power.limit", "gpu.power.requested_limit", "power_limit",
    ),
    "power_default_limit": ("power.default_limit", "gpu.power.default_limit"),
    "clock_sm": (
        "clocks.current.sm", "clocks.sm", "clocks.current.graphics", "clocks.gr", "sm_clock", "clock_sm", "gpu_clock",
        "graphics_clock",
    ),
    "clock_sm_max": ("clocks.max.sm", "clocks.max.graphics", "clocks.max.gr", "max_sm_clock"),
    "clock_memory": ("clocks.current.memory", "clocks.mem", "mem_clock", "memory_clock"),
    "utilization": ("utilization.gpu", "utilization", "gpu_util", "util", "gpu_utilization", "utilization_gpu"),
    "memory_used": ("memory.used", "memory_used", "mem_used", "used_memory", "fb_used"),
    "memory_total": ("memory.total", "memory_total", "mem_total", "total_memory"),
    "fan": ("fan.speed", "fan", "fan_speed"),
    "remap_uncorrectable": ("remapped_rows.uncorrectable", "remapped_rows.dbe"),
}  # fmt: skip
"""Canonical column → names, best first."""

TEXT: Final[dict[str, tuple[str, ...]]] = {
    "time": ("timestamp", "time", "date_time", "datetime", "ts", "wall_time"),
    "host": ("hostname", "host", "node", "node_name", "machine"),
    "gpu": ("index", "gpu_index", "gpu_id", "gpu", "device", "device_index", "idx"),
    "uuid": ("uuid", "gpu_uuid"),
    "bus_id": ("pci.bus_id", "gpu_bus_id", "bus_id"),
    "model": ("name", "gpu_name", "model", "product_name"),
}
FLAGS: Final[dict[str, tuple[str, ...]]] = {
    "remap_pending": ("remapped_rows.pending",),
    "remap_failure": ("remapped_rows.failure",),
}
ECC_PARTS: Final = ("device_memory", "dram", "register_file", "l1_cache", "l2_cache", "texture_memory", "cbu", "sram")
_PLAIN: Final = ("timestamp", "uuid", "name", "pci.bus_id", "hostname", "clocks_event_reasons.active")
"""Columns without a header that are plain from any of their cells."""
_KNOWN: Final = {n for names in (*NUMERIC.values(), *TEXT.values(), *FLAGS.values()) for n in names}
_OTHERS: Final = (
    r"^(clocks|clocks_|ecc\.|retired_pages|remapped_rows|memory\.|utilization\.|temperature\.|power\.|pcie\.|pci\.|fan\."
    r"|encoder|fabric|driver_|vbios|serial|pstate|compute_|display_|persistence|mig\.|accounting|count$|addressing|gpu_recovery"
    r"|inforom|gom|enforced\.|gpu\.power|module\.|protected_memory|vgpu|compute_cap|gsp|c2c|platform|kmd|hostname|dram|mem_util|memory_util)"
)


@dataclass(frozen=True, slots=True)
class Field:
    """A header cell: its name as printed, without unit, and its unit."""

    name: str
    unit: str
    printed: str


def header(line: str) -> list[Field] | None:
    """The fields of a header line, or None when the line is none.

    At least half of the names must be known, and one of them must be a measurement or an identity of a GPU.
    """
    if not re.match(HEADER, line):
        return None
    fields = [_field(cell) for cell in line.strip().rstrip(",").split(",")]
    known = [f for f in fields if f.name in _KNOWN or re.match(_OTHERS, f.name)]
    telling = [
        f for f in known if f.name not in TEXT["time"] + TEXT["host"] + ("name", "device", "index", "model", "serial")
    ]
    if not telling or 2 * len(known) < len(fields) or _is_value(fields):
        return None
    return fields


def certainty(fields: Sequence[Field]) -> float:
    """How sure a header makes that the file is GPU telemetry: dotted names are nvidia-smi's own."""
    dotted = [f for f in fields if "." in f.name or f.name.startswith("clocks_")]
    if dotted:
        return 0.97
    telling = [f for f in fields if f.name in _KNOWN and re.search(r"gpu|temp|util|power|sm", f.name)]
    return 0.85 if len(telling) >= 2 else 0.55


def headerless(lines: Sequence[str]) -> list[Field] | None:
    """Fields of rows without a header, told by the units in their cells, else by their values; None when neither says.

    nvidia-smi --format=csv,noheader keeps units: '%' is utilization (a second one, memory utilization), 'MHz' the SM
    clock (a second one, the memory clock), 'W' power (a second one, its limit), 'MiB' used memory, then total.
    """
    rows, kinds = _kinds(lines)
    order = {"util": ["utilization.gpu", "utilization.memory"], "watt": ["power.draw", "power.limit"],
             "clock": ["clocks.sm", "clocks.mem"], "memory": ["memory.used", "memory.total"]}  # fmt: skip
    units = set(order) & set(kinds)
    names = [left.pop(0) if (left := order.get(k)) else k if k in (*_PLAIN, "bare") else "" for k in kinds]
    if "clocks.mem" in names:
        clocks = [[row[names.index(n)] for row in rows] for n in ("clocks.sm", "clocks.mem")]
        if smi_values.is_highest(*clocks):
            names[names.index("clocks.mem")] = "clocks.max.sm"
    told = smi_values.named(rows, names)
    if units and not any(n and k == "bare" for n, k in zip(told, kinds, strict=True)):
        first = next((i for i, n in enumerate(names) if n in ("uuid", "name")), 0)
        for name in (["index"] if "bare" in names[:first] else []) + ["temperature.gpu"]:
            if "bare" in names:
                names[names.index("bare")] = name
        told = ["" if n == "bare" else n for n in names]
    telling = {"utilization.gpu", "power.draw", "clocks.sm", "memory.used", "temperature.gpu", "uuid", "name"} & set(
        told
    )
    if not (units and telling) and len(telling - {"uuid", "name"}) < 2:
        return None
    return [_field(n or f"column {i + 1}") for i, n in enumerate(told)]


def like_rows(lines: Sequence[str]) -> bool:
    """Whether lines look like nvidia-smi rows without a header, whatever their columns may be."""
    rows, kinds = _kinds(lines)
    numbers = sum(k == "bare" for k in kinds)
    return (
        numbers >= 2
        and bool({"uuid", "pci.bus_id", "name", "clocks_event_reasons.active"} & set(kinds))
        and len(rows) >= 2
    )


def _kinds(lines: Sequence[str]) -> tuple[list[list[str]], list[str]]:
    """Cells of the lines of the commonest width, and what each column's cells are by themselves."""
    rows = [[c.strip() for c in line.split(",")] for line in lines if 1 <= line.count(",") <= 200]
    width = Counter(len(r) for r in rows).most_common(1)[0][0] if rows else 0
    rows = [r for r in rows if len(r) == width]
    return rows, [_guess([r[i] for r in rows]) for i in range(width)]


def _field(cell: str) -> Field:
    printed = cell.strip()
    found = re.match(r"^(.*?)\s*(?:\[([^\]]*)\]|\(([^)]*)\))?\s*$", printed)
    name, unit = (found[1], found[2] or found[3] or "") if found else (printed, "")
    if name in ("memory.used", "memory.total"):  # as --query-gpu names them: without units the driver prints MiB
        unit = unit or "MiB"
    return Field(name.strip().lower(), unit.strip(), printed)


def _is_value(fields: Sequence[Field]) -> bool:
    return any(re.fullmatch(r"\d+(\.\d+)?", f.name) for f in fields)


def _guess(cells: Sequence[str]) -> str:
    told = [c for c in cells if c not in telemetry.ABSENT]
    for kind, pattern in (
        ("timestamp", r"\d{4}[/-]\d\d[/-]\d\d[ T]\d\d:\d\d:\d\d.*|\d{10}(\.\d+)?"), ("uuid", r"(GPU|MIG)-[0-9a-fA-F-]+.*"),
        ("pci.bus_id", r"[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d"), ("util", r"\d+ ?%"), ("memory", r"\d+ ?MiB"),
        ("watt", r"\d+(\.\d+)? ?W"), ("clock", r"\d+ ?MHz"), ("bare", r"\d+(\.\d+)?"),
        ("name", r"(NVIDIA|Tesla|GeForce|Quadro|RTX|A100|H100|AMD).*"), ("clocks_event_reasons.active", r"0x[0-9A-Fa-f]{16}"),
        ("hostname", r"[a-z][\w.-]*\d[\w.-]*"),
    ):  # fmt: skip
        if told and all(re.fullmatch(pattern, c) for c in told):
            return kind
    return ""
