"""Ports: what each counter showed first and last, and what it gained in between."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

KEYS = ("host", "device", "port", "guid")


@dataclass(frozen=True, slots=True)
class Counter:
    """One counter of one port over its readings."""

    name: str
    """Device and port in words."""
    host: str | None
    counter: str
    last: float
    growth: float | None
    """Last minus first reading, None for one reading or after a reset."""
    saturated: bool
    source: int | None
    line: int | None


def counters(ports: pl.DataFrame) -> Iterator[Counter]:
    """Every counter of every port, in file order; readings ordered by time where known, else by file and place."""
    ordered = ports.sort("time", "source", "snapshot", nulls_last=True, maintain_order=True)
    for key, part in ordered.group_by(*KEYS, "counter", maintain_order=True):
        host, device, port, guid, counter = key
        values = part["value"].to_list()
        growth = values[-1] - values[0] if len(values) > 1 and values[-1] >= values[0] else None
        name = " ".join(
            filter(None, [str(device) if device else str(guid or ""), f"port {port}" if port is not None else ""])
        )
        last = part.row(-1, named=True)
        yield Counter(
            name.strip() or "the port", host if isinstance(host, str) else None, str(counter), values[-1], growth,
            bool(part["saturated"].fill_null(value=False).any()), last["source"], last["line"],
        )  # fmt: skip
