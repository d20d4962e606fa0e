"""GPU limits, clocks event reasons and Xid errors, from the data files beside this module."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Final, Literal

ReasonKind = Literal["benign", "power", "hardware", "thermal", "brake"]
XidClass = Literal[
    "application", "contained", "information", "follow-up", "reset", "reboot", "mechanical", "nvlink", "support", "detail",
    "memory",
]  # fmt: skip

IDLE: Final = 0x1
POWER_CAP: Final = 0x4
HW_SLOWDOWN: Final = 0x8
THERMAL: Final = 0x20 | 0x40
POWER_BRAKE: Final = 0x80


@dataclass(frozen=True, slots=True)
class Gpu:
    """Limits of one GPU model; what nobody stated is None. Limits found in a log of the same machine win over these."""

    model: str
    slowdown: float | None
    """Core temperature at which hardware cuts the clocks [°C]."""
    shutdown: float | None
    max_operating: float | None
    """Core temperature above which the driver lowers the clocks [°C]."""
    memory_max: float | None
    """Memory temperature above which the driver lowers the clocks [°C]."""
    power: float | None
    """Default power limit [W]."""
    clock: float | None
    """Highest SM clock [MHz]."""
    source: str
    verified: bool


@dataclass(frozen=True, slots=True)
class Reason:
    """One bit of the clocks event reasons."""

    bit: int
    name: str
    """As in nvidia-smi's column name: sw_thermal_slowdown."""
    kind: ReasonKind
    meaning: str


@dataclass(frozen=True, slots=True)
class Xid:
    """One driver error code: what it means and what is done about it."""

    code: int
    meaning: str
    kind: XidClass
    action: str
    source: str
    verified: bool

    @property
    def hardware(self) -> bool:
        """Whether it speaks for a fault of the machine rather than of the program."""
        return self.kind in ("contained", "reset", "reboot", "mechanical", "nvlink", "support", "memory")


def gpu(name: str | None) -> Gpu | None:
    """The row of the GPU called `name` as nvidia-smi prints it, or None when the model is not listed."""
    if not name:
        return None
    return next((row for pattern, row in _gpus() if pattern.search(name)), None)


def least_power(clock: float, limit: float) -> float | None:
    """The smallest default power of the accelerators with the highest clock `clock` that could have the limit `limit` [W].

    None where a graphics card has that clock too: their makers sell one chip under many limits.
    """
    rows = [row for _, row in _gpus() if row.clock == clock]
    if any(row.memory_max is None for row in rows):
        return None
    return min((row.power for row in rows if row.power is not None and row.power >= 0.99 * limit), default=None)


@cache
def reasons() -> tuple[Reason, ...]:
    """All known bits, lowest first."""
    return tuple(Reason(int(r["bit"]), r["name"], r["kind"], r["meaning"]) for r in _rows("event_reasons.tsv"))  # type: ignore[arg-type]


@cache
def xids() -> dict[int, Xid]:
    """Code → Xid."""
    return {
        int(r["code"]): Xid(
            int(r["code"]), r["meaning"], r["class"], r["action"], r["source"], r["verified"] == "yes"  # type: ignore[arg-type]
        )
        for r in _rows("xids.tsv")
    }  # fmt: skip


@cache
def _gpus() -> tuple[tuple[re.Pattern[str], Gpu], ...]:
    return tuple((re.compile(row["pattern"], re.IGNORECASE), _gpu(row)) for row in _rows("gpus.tsv"))


def _gpu(row: dict[str, str]) -> Gpu:
    def number(name: str) -> float | None:
        return float(row[name]) if row[name] else None

    return Gpu(
        model=row["model"], slowdown=number("slowdown"), shutdown=number("shutdown"),
        max_operating=number("max_operating"), memory_max=number("memory_max"), power=number("power"),
        clock=number("clock"), source=row["source"], verified=row["verified"] == "yes",
    )  # fmt: skip


def _rows(name: str) -> list[dict[str, str]]:
    text = resources.files("gdiag.reference").joinpath(name).read_text(encoding="utf-8")
    header, *lines = (line.split("\t") for line in text.splitlines() if line and not line.startswith("#"))
    return [dict(zip(header, line, strict=True)) for line in lines]
