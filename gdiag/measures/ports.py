"""Ports: what each counter showed first and last, what it gained in between and when."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl

from gdiag.measures.step_time import StepTimes
from gdiag.measures.telemetry import step_stamps
from gdiag.model import Severity
from gdiag.reference.port_counters import Threshold

KEYS: Final = ("host", "device", "port", "guid")
STATES: Final = frozenset(
    {"active", "unsettled", "link_up", "disabled", "rate", "raw_ber", "effective_ber", "symbol_ber"}
)
"""What is no count and may fall."""
_DOWN: Final = frozenset({"link_downed", "link_down_events_phy", "nvlink_link_recovery_failed_events"})
"""A link that went down and stayed: what stops every collective that crosses it while it grows."""
_INTERVALS: Final = 8
"""Intervals between readings from which on it can be told whether a counter grows when steps are slow."""


@dataclass(frozen=True, slots=True)
class Interval:
    """What a counter gained between two readings; times in Unix seconds, None where not known."""

    growth: float
    start: float | None
    end: float | None


@dataclass(frozen=True, slots=True)
class Counter:
    """One counter of one port over its readings."""

    name: str
    """Device and port in words."""
    host: str | None
    counter: str
    last: float
    intervals: tuple[Interval, ...]
    """Between consecutive readings; those left out between which some counter of the port fell: a reset, or another port."""
    saturated: bool
    source: int | None
    line: int | None
    kind: str | None = None
    """Ports of one kind are alike; None where nothing says what they are."""
    peer: str | None = None
    """The other end of the cable."""

    @property
    def growth(self) -> float | None:
        """What it gained over all intervals, None for one reading."""
        return sum(i.growth for i in self.intervals) if self.intervals else None

    @property
    def span(self) -> tuple[float, float] | None:
        """First and last moment between which it grew; None without clocks or growth."""
        grown = [(i.start, i.end) for i in self.intervals if i.growth > 0 and i.start is not None and i.end is not None]
        return (min(a for a, _ in grown), max(b for _, b in grown)) if grown else None

    @property
    def hours(self) -> float | None:
        """Hours between the first and the last reading."""
        known = [(i.start, i.end) for i in self.intervals if i.start is not None and i.end is not None]
        return (max(b for _, b in known) - min(a for a, _ in known)) / 3600 if known else None


def counters(ports: pl.DataFrame) -> Iterator[Counter]:
    """Every counter of every port, in file order; readings ordered by time where known, else by file and place."""
    ordered = ports.sort("time", "source", "snapshot", nulls_last=True, maintain_order=True)
    for key, port in ordered.group_by(KEYS, maintain_order=True):
        host, device, number, guid = key
        name = " ".join(
            filter(None, [str(device) if device else str(guid or ""), f"port {number}" if number is not None else ""])
        )
        parts = port.partition_by("counter", maintain_order=True)
        fallen = _fallen(parts)
        for part in parts:
            values, times = part["value"].to_list(), part["time"].to_list()
            last = part.row(-1, named=True)
            gains = tuple(
                Interval(values[i + 1] - values[i], times[i], times[i + 1])
                for i in range(len(values) - 1)
                if i not in fallen and part["counter"][0] not in STATES
            )
            yield Counter(
                name.strip() or "the port", host if isinstance(host, str) else None, str(last["counter"]), values[-1], gains,
                bool(part["saturated"].fill_null(value=False).any()), last["source"], last["line"],
                last.get("kind"), last.get("peer"),
            )  # fmt: skip


def judge(seen: Counter, limit: Threshold, factor: float = 1.0) -> tuple[Severity, bool] | None:
    """Severity of a counter, and whether growth is the reason; None where nothing is wrong. factor: multiplies every threshold."""
    free = allowed(seen, limit)
    if seen.growth is not None and free is not None and seen.growth > factor * free:
        return (Severity.CRITICAL if seen.counter in _DOWN else Severity.WARNING), True
    if seen.growth == 0:
        return None
    for severity, bound in ((Severity.WARNING, limit.warning), (Severity.INFO, limit.info)):
        if bound is not None and seen.last > factor * bound:
            return severity, False
    return None


def allowed(seen: Counter, limit: Threshold) -> float | None:
    """Growth that is no warning over the time between the first and the last reading."""
    return None if limit.growth is None else limit.growth * max(1.0, seen.hours or 0.0)


def cables(facts: pl.DataFrame) -> dict[str, str]:
    """What a topology says of ports and nodes as counters name them.

    `lid 5 port 3` or `0x… port 3` → both ends of its cable; `lid 5` or `0x…` → the node's name.
    """
    told = facts.filter(pl.col("scope").is_in(["cable", "node"])).select("key", "value")
    return {str(key): str(value) for key, value in told.iter_rows()}


def _fallen(parts: list[pl.DataFrame]) -> set[int]:
    """Numbers of the intervals in which some counter of a port fell."""
    found: set[int] = set()
    for part in parts:
        if part["counter"][0] not in STATES:
            found.update(np.flatnonzero(np.diff(part["value"].to_numpy()) < 0).tolist())
    return found


@dataclass(frozen=True, slots=True)
class Match:
    """How a counter's growth lies to the slow steps of the run."""

    inside: int
    """Slow steps within the intervals in which it grew."""
    slow: int
    """Slow steps between the first and the last reading."""
    steps: int
    """All steps between them."""
    intervals: int
    chance: float | None
    """Slow steps that would lie inside if the growth came at any other time of the same readings, on average."""
    p: float | None
    """Share of those other times at which as many would lie inside; None with too few readings to tell."""


def match(counter: Counter, times: StepTimes, slow: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Match | None:
    """The growth of a counter against slow steps (indices into `times`); None where the clocks do not meet.

    Chance is the same pattern of growth, turned by every number of intervals: it keeps bursts on both sides.
    """
    dated = [i for i in counter.intervals if i.start is not None and i.end is not None and i.end > i.start]
    if not dated or np.isfinite(times.time).sum() < 2:
        return None
    stamps = step_stamps(times)
    starts, ends = (np.array([getattr(i, side) for i in dated], dtype=float) for side in ("start", "end"))
    # `date` prints whole seconds: a reading was made in the second after its stamp.
    starts, ends = starts + 0.5, ends + 0.5
    held = np.array([np.sum((stamps[slow] > a) & (stamps[slow] <= b)) for a, b in zip(starts, ends, strict=True)])
    covered = int(np.sum((stamps > starts.min()) & (stamps <= ends.max())))
    if covered < 2:
        return None
    grown = np.array([i.growth > 0 for i in dated])
    inside = int(held[grown].sum())
    chance = p = None
    if len(dated) >= _INTERVALS and not grown.all():
        turned = np.array([held[np.roll(grown, k)].sum() for k in range(1, len(dated))])
        chance, p = float(turned.mean()), float((1 + np.sum(turned >= inside)) / len(dated))
    return Match(inside, int(held.sum()), covered, len(dated), chance, p)
