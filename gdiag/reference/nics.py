"""What a network card's driver writes into the kernel log and how grave it is, from nic_lines.tsv beside this module."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from functools import cache
from importlib import resources

from gdiag.model import Severity


@dataclass(frozen=True, slots=True)
class NicLine:
    """One kind of line."""

    name: str
    pattern: re.Pattern[str]
    severity: Severity | None
    """None: says nothing by itself."""
    kind: str
    """errors (a link that damages), heat, firmware, transfer, power."""
    meaning: str
    action: str
    source: str


@cache
def nic_lines() -> tuple[NicLine, ...]:
    """Every known kind; the first whose pattern is found in a line is its kind."""
    text = resources.files("gdiag.reference").joinpath("nic_lines.tsv").read_text("utf-8")
    return tuple(
        NicLine(
            row["name"], re.compile(row["pattern"]),
            None if row["severity"] == "ignored" else Severity[row["severity"].upper()], row["kind"],
            row["meaning"], row["action"], row["source"],
        )
        for row in csv.DictReader(text.splitlines(), delimiter="\t")
    )  # fmt: skip


def nic_line(text: str) -> NicLine | None:
    """The kind of a driver's line, None for one that is not known."""
    return next((known for known in nic_lines() if known.pattern.search(text)), None)
