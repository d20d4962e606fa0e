"""Transceivers: each lane's figures beside the module's own limits and flags."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from gdiag.measures.readings import latest, own

FIGURES = {"rx_power": "dBm", "tx_power": "dBm", "bias": "mA", "temperature": "°C", "voltage": "V"}
"""What a module measures of itself, and its unit."""
DARK = -39.9
"""Received power up to which there is no light [dBm]: receivers print -40 for it."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One figure of one lane, or of the module, in one reading."""

    host: str | None
    device: str | None
    lane: int | None
    figure: str
    value: float | None
    limits: dict[str, float]
    """low_alarm, high_warning, … → the module's own limit."""
    flags: dict[str, bool]
    source: int | None
    line: int | None

    @property
    def dark(self) -> bool:
        """Whether it is a receiver without light."""
        return self.figure == "rx_power" and self.value is not None and self.value <= DARK


def readings(modules: pl.DataFrame) -> Iterator[Reading]:
    """The last reading of every figure in the last file of each module; limits that are given once hold for every lane.

    A module whose device is not named is another one in every file.
    """
    last = latest(modules, ("host", "device", own("device")))
    for (host, device, _), part in last.group_by("host", "device", "source", maintain_order=True):
        values: dict[tuple[str, int | None], dict[str, tuple[float, dict[str, object]]]] = {}
        for row in part.iter_rows(named=True):
            figure, suffix = _split(row["counter"])
            values.setdefault((figure, row["port"]), {})[suffix] = (row["value"], row)
        for (figure, lane), told in values.items():
            shared = values.get((figure, None), {})
            if lane is None and not set(told) - {s for s in told if s.endswith("_limit")}:
                continue
            row = next(iter(told.values()))[1]
            yield Reading(
                host if isinstance(host, str) else None, device if isinstance(device, str) else None, lane, figure,
                told[""][0] if "" in told else None,
                {s.removesuffix("_limit"): v for s, (v, _) in (shared | told).items() if s.endswith("_limit")},
                {s: v > 0 for s, (v, _) in told.items() if s.endswith(("_alarm", "_warning"))},
                row["source"], row["line"],  # type: ignore[arg-type]
            )  # fmt: skip


def _split(counter: str) -> tuple[str, str]:
    """module_rx_power_low_alarm_limit → rx_power, low_alarm_limit."""
    name = counter.removeprefix("module_")
    figure = next((f for f in FIGURES if name == f or name.startswith(f"{f}_")), name)
    return figure, name.removeprefix(figure).lstrip("_")
