"""System metrics of wandb (`system.gpu.0.temp`, `gpu.0.powerWatts`) → GPU telemetry; also `wandb-events.jsonl`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

import polars as pl

from gdiag.errors import InputError
from gdiag.ingesters import flat, json_chunks, rare
from gdiag.ingesters.reading import Input, Options, Reading
from gdiag.ingesters.values import whole
from gdiag.model import Source

FORMAT = "wandb-events"
_KEY: Final = re.compile(r"^(?:system\.)?gpu\.(\d+)\.(\w+)$")
_COLUMNS: Final = {
    "gpu": "utilization", "temp": "temperature", "powerWatts": "power", "enforcedPowerLimitWatts": "power_limit",
    "smClock": "clock_sm", "memoryClock": "clock_memory", "memoryAllocatedBytes": "memory_used",
    "correctedMemoryErrors": "ecc_corrected", "uncorrectedMemoryErrors": "ecc_uncorrected", "fanSpeed": "fan",
}  # fmt: skip


def recognise(given: Input) -> float:
    """JSON lines with `system.` keys."""
    head = given.head[:8192].lstrip()
    return 0.96 if head.startswith(b"{") and re.search(rb'"system\.(?:gpu\.\d+\.|cpu)', head) else 0.0


def read(given: Input, options: Options) -> Reading:  # noqa: ARG001 (the protocol's signature)
    """A row per GPU and sample.

    Raises:
        InputError: no line is an object.
    """
    found = json_chunks.read(*given.opened())
    if not found.frames:
        raise InputError(f"{given.path} has no line that is a JSON object")
    frame, left = json_chunks.joined(found)
    table = gpus(frame.to_dicts())
    present = () if table is None else table.columns
    mapped = {canonical: f"gpu.*.{name}" for name, canonical in _COLUMNS.items() if canonical in present}
    notes = (*(("no GPU metrics in the system samples",) if table is None else ()), *rare.note([*dict.fromkeys(left)]))
    return Reading(Source(given.path, FORMAT, found.objects, len(found.bad), mapped, notes), gpus=table)


def gpus(rows: Sequence[Mapping[str, flat.Cell]]) -> pl.DataFrame | None:
    """GPU telemetry of system samples, None when they hold none."""
    samples: list[dict[str, float | int | None]] = []
    for number, row in enumerate(rows, 1):
        time = row.get("_timestamp")
        line = row.get(flat.LINE, number)
        found: dict[int, dict[str, float | int | None]] = {}
        for key, value in row.items():
            matched = _KEY.match(key)
            if matched and isinstance(value, int | float) and (column := _COLUMNS.get(matched.group(2))):
                if (gpu := whole(matched.group(1), bits=32)) is None:
                    continue
                keys = {
                    "gpu": gpu,
                    "time": float(time) if isinstance(time, int | float) else None,
                    "line": int(line or 0),
                }
                found.setdefault(gpu, keys)[column] = float(value)
        samples.extend(found[gpu] for gpu in sorted(found))
    if not samples:
        return None
    schema = {"time": pl.Float64, "gpu": pl.Int32, "line": pl.Int64, **dict.fromkeys(_COLUMNS.values(), pl.Float64)}
    frame = pl.DataFrame(samples, schema=schema)
    return frame.drop(name for name in frame.columns if frame[name].null_count() == frame.height)
