"""How many NVLinks a GPU model has and how fast each is, from nvlinks.tsv beside this module.

Only models whose links all lead to a switch in the same machine: on others some links lead nowhere by design.
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from functools import cache
from importlib import resources


@dataclass(frozen=True, slots=True)
class NvLinks:
    """The links of one model."""

    model: str
    links: int
    rate: float
    """Of one link in one direction [GB/s], as nvidia-smi prints it."""
    source: str


@cache
def _table() -> tuple[tuple[re.Pattern[str], NvLinks], ...]:
    text = resources.files("gdiag.reference").joinpath("nvlinks.tsv").read_text("utf-8")
    return tuple(
        (re.compile(row["pattern"]), NvLinks(row["model"], int(row["links"]), float(row["rate"]), row["source"]))
        for row in csv.DictReader(text.splitlines(), delimiter="\t")
    )


def nvlinks(model: str | None) -> NvLinks | None:
    """The row of `model` as nvidia-smi prints it, None for models that are not listed."""
    return next((links for pattern, links in _table() if model and pattern.search(model)), None)
