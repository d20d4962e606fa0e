"""What is known of a simulated run: the answer that a report is held against."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Event:
    """One fault (or harmless event, where `benign`)."""

    kind: str
    accept: tuple[str, ...]
    """Causes that count as right."""
    patterns: tuple[str, ...]
    onset: int
    """Step of the log's own numbering at which it begins."""
    layer: str | None = None
    rank: int | None = None
    gpu: dict[str, str | int | None] | None = None
    data: tuple[int, int] | None = None
    """Sample ids: first inclusive, last exclusive."""
    whole_run: bool = False
    slow: bool = False
    benign: bool = False
    tolerates_more: bool = False
    """One fault with many consequences: a few more incidents are forgiven."""
    period: int | None = None
    strength: float | None = None
    """Excess over the noise that the logged rows hold, in standard deviations: root of the sum of squares."""


@dataclass(frozen=True, slots=True)
class Truth:
    """The labels of one run."""

    fault: str
    seed: int
    noise: str
    style: str
    every: int
    steps: int
    healthy: bool
    note: str
    events: tuple[Event, ...] = ()
    tolerated: tuple[str, ...] = ()
    """Patterns that are no false alarm in this run."""
    origin: str = field(default="gdiag simulate")

    def json(self) -> dict[str, Any]:
        """The content of truth.json: null and false fields of events are left out."""
        content = asdict(self)
        content["events"] = [
            {k: v for k, v in event.items() if v is not None and v is not False} for event in content["events"]
        ]
        return content
