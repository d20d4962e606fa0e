"""Error counters of network ports and the values from which they matter, from port_counters.tsv beside this module."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib import resources


@dataclass(frozen=True, slots=True)
class Threshold:
    """One counter. A value above `info` or `warning` since the last reset matters so much; None = never by itself."""

    counter: str
    """As sysfs spells it, in lower case."""
    meaning: str
    kind: str
    """errors (a link that damages), congestion (a link that has no room), management."""
    info: float | None
    warning: float | None
    growth: float | None
    """Growth in an hour, or between two readings less apart, above which it is a warning; None = never."""
    saturates: float | None
    """Value at which the counter stops counting."""
    source: str


@cache
def thresholds() -> dict[str, Threshold]:
    """Counter → its thresholds."""
    text = resources.files("gdiag.reference").joinpath("port_counters.tsv").read_text("utf-8")

    def number(cell: str) -> float | None:
        return float(cell) if cell else None

    return {
        row["counter"]: Threshold(
            row["counter"], row["meaning"], row["kind"], number(row["info"]), number(row["warning"]), number(row["growth"]),
            number(row["saturates"]), row["source"],
        )
        for row in csv.DictReader(text.splitlines(), delimiter="\t")
    }  # fmt: skip
