"""What a healthy fabric reaches: link rates and plateau bandwidths per GPU model, from fabrics.tsv beside this module."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Final

NIC_RATES: Final = (100.0, 200.0, 400.0, 800.0)
"""Port rates of common network cards [Gb/s]; practical peaks are 96–98 % of them (nccl-tests issues 119 and 232)."""
NICS: Final = (1, 2, 4, 8)


_PLATFORMS: Final = {
    "p4d": 400.0,
    "p4de": 400.0,
    "p5": 3200.0,
    "p5e": 3200.0,
    "p5en": 3200.0,
    "p6-b200": 3200.0,
    "p6-b300": 6400.0,
}
"""Network rate of cloud instances with eight GPUs [Gb/s], by the name in the lines of aws-ofi-nccl (AWS instance tables;
p4d and p5 also by measurement, hardware.md 2.2)."""


def platform_rate(name: str) -> float | None:
    """Rate of all cards of one instance of type `name` [Gb/s], None when it is not in the table."""
    return _PLATFORMS.get(name.lower().split(".")[0])


_SWITCHED: Final = frozenset({"A100 SXM", "H100 SXM", "H200", "B200"})


@dataclass(frozen=True, slots=True)
class Fabric:
    """One GPU model's link and what a collective reaches on it; GB/s, 1e9 bytes."""

    model: str
    nvlink: float
    """Unidirectional link rate per GPU."""
    ranks: int
    hosts: int
    collective: str
    plateau: float | None
    """Healthy plateau bus bandwidth, with NVLS where the model has it."""
    ring: float | None
    """Healthy plateau without NVLS."""
    floor: float
    """Acceptance floor; 0 where none is known."""
    source: str
    verified: bool


@cache
def _table() -> tuple[tuple[re.Pattern[str], Fabric], ...]:
    text = resources.files("gdiag.reference").joinpath("fabrics.tsv").read_text("utf-8")
    return tuple(
        (
            re.compile(row["pattern"]),
            Fabric(
                row["model"], float(row["nvlink"]), int(row["ranks"]), int(row["hosts"]), row["collective"],
                float(row["plateau"]) if row["plateau"] else None, float(row["ring"]) if row["ring"] else None,
                float(row["floor"]), row["source"], row["verified"] == "yes",
            ),
        )
        for row in csv.DictReader(text.splitlines(), delimiter="\t")
    )  # fmt: skip


def link_rate(model: str) -> float | None:
    """NVLink or xGMI rate per GPU of `model` [GB/s], None when it is not in the table."""
    return next((fabric.nvlink for pattern, fabric in _table() if pattern.search(model)), None)


def switched_rate(model: str) -> float | None:
    """NVLink rate per GPU [GB/s] of models whose GPUs all meet in a switch; None for others and for unknown ones."""
    return next((f.nvlink for pattern, f in _table() if f.model in _SWITCHED and pattern.search(model)), None)


def expected(model: str, ranks: int, hosts: int, collective: str) -> Fabric | None:
    """The table's row for exactly this shape; None when nobody measured it."""
    for pattern, fabric in _table():
        shape = (fabric.ranks, fabric.collective) == (ranks, collective)
        if shape and (fabric.hosts == hosts or fabric.hosts > 1) and pattern.search(model):
            return fabric
    return None


def matching_nics(per_host: float) -> str | None:
    """The usual set of network cards whose practical rate is nearest to `per_host` [GB/s], when within 12 %.

    Of sets with one total rate the one with more cards: eight cards of 200 Gb/s are common, two of 800 are not.
    """
    choices = [
        (abs(per_host / (n * rate / 8 * 0.97) - 1), -n, f"{n}×{rate:.0f} Gb/s") for n in NICS for rate in NIC_RATES
    ]
    gap, _, name = min(choices)
    return f"{name} per host" if gap <= 0.12 else None


def alike(ranks: int, collective: str, plateau: float) -> str | None:
    """Models whose healthy plateau in this shape is within 7 % of `plateau` [GB/s]; None when none is."""
    names = [
        fabric.model for _, fabric in _table()
        if (fabric.ranks, fabric.collective) == (ranks, collective) and fabric.plateau and abs(plateau / fabric.plateau - 1) <= 0.07
    ]  # fmt: skip
    return f"{ranks} healthy {' or '.join(names)}" if names else None
