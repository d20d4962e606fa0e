"""Lines in which a network card's driver reports itself, put together by card and kind and placed on the run's steps."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl

from gdiag.measures import clock_alignment
from gdiag.measures.step_time import StepTimes
from gdiag.measures.telemetry import step_stamps
from gdiag.reference.nics import NicLine, nic_line

_DEVICE: Final = re.compile(r"mlx5_core(?:\.sf)? \S+?:? ([A-Za-z][\w.-]*): (?:Port: (\d+) )?")
_ONE: Final = 5.0
"""Seconds within which lines tell of one event: the network and the RDMA side both report it."""
NEAR: Final = 60.0
"""Seconds after an event within which a slow step may follow from it."""


@dataclass(frozen=True, slots=True)
class NicEvents:
    """All lines of one kind of one card."""

    known: NicLine
    host: str | None
    card: str
    """Device and port where a line names them, else the PCI address."""
    count: int
    """Lines that are no echo of the one before."""
    row: dict[str, object]
    """The first line: source, line."""
    time: float | None
    last_time: float | None
    step: int | None
    last_step: int | None
    stays: bool
    """A link that is not seen to come up again."""
    slow_near: int
    """Slow steps that end within a minute after one of the lines."""


def nic_events(
    events: pl.DataFrame, times: StepTimes | None, slow: np.ndarray[tuple[int], np.dtype[np.int64]]
) -> list[NicEvents]:
    """Groups in order of their first line; `slow` are indices into `times`."""
    said = events.filter(pl.col("kind") == "nic") if events.height else events
    if not said.height:
        return []
    stamps = step_stamps(times) if times is not None and np.isfinite(times.time).sum() >= 2 else None
    ends = stamps[slow] if stamps is not None else np.empty(0)
    groups: dict[tuple[str, str | None, str], list[dict[str, object]]] = {}
    for row in said.iter_rows(named=True):
        known = nic_line(str(row["text"]))
        if known is not None:
            groups.setdefault((known.name, row["host"], str(row["bus_id"])), []).append(row)
    found = []
    for (_, host, bus), rows in groups.items():
        known = nic_line(str(rows[0]["text"]))
        if known is None or known.severity is None:
            continue
        moments = [float(str(r["time"])) for r in rows if r["time"] is not None]
        steps = (
            [clock_alignment.step_at(t, stamps, times.step) for t in moments] if stamps is not None and times else []
        )
        placed = [
            s
            for s, t in zip(steps, moments, strict=False)
            if s is not None and stamps is not None and t >= stamps[0] - NEAR
        ]
        up = groups.get(("link_up", host, bus), [])
        found.append(NicEvents(
            known, host, _card(rows, bus), _count(rows, moments), {"source": rows[0]["source"], "line": rows[0]["line"]},
            min(moments, default=None), max(moments, default=None), min(placed, default=None), max(placed, default=None),
            known.name == "link_down" and not _after(up, rows[-1]),
            int(sum(any(0 <= end - t <= NEAR for t in moments) for end in ends)),
        ))  # fmt: skip
    return found


def _count(rows: list[dict[str, object]], moments: list[float]) -> int:
    if len(moments) == len(rows):
        return 1 + int(np.sum(np.diff(np.sort(moments)) > _ONE))
    sides = sum("Port: " in str(r["text"]) for r in rows)
    return max(sides, len(rows) - sides)


def _after(up: list[dict[str, object]], last: dict[str, object]) -> bool:
    """Whether the link came up in a line after the last one that it went down in."""
    return any(
        (int(str(r["source"])), int(str(r["line"]))) > (int(str(last["source"])), int(str(last["line"]))) for r in up
    )


def _card(rows: list[dict[str, object]], bus: str) -> str:
    names = [f"{m[1]} port {m[2]}" if m[2] else m[1] for r in rows if (m := _DEVICE.search(str(r["text"])))]
    return next(
        (name for name in names if " port " in name),
        names[0] if names else f"the card at {bus}" if bus != "None" else "a card",
    )
