"""A switch reports a failed power supply or fan, or does not report one at all.

What it checks
    The states of power supplies, their DC output and fans as ibswinfo prints them, each fan's speed against the others of
    the switch, and whether a temperature and every fan's speed are there. What is missing or no number is a note: the
    sensor could not be read.

Why it matters
    A switch on one supply goes down with the next one, and every job that crosses it stops; without air it slows its
    links or shuts down.

What to do
    Reseat or replace the supply or fan, check its mains feed, and read the state again. Where a figure is missing, update
    the firmware and read again before replacing anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import polars as pl

from gdiag.measures.readings import latest, own
from gdiag.measures.run import RunView
from gdiag.model import Finding, Measure, Severity

CODE = "GD713"
NAME = "switch-state"
NEEDS: tuple[str, ...] = ("switches.value",)
_MEND: Final = Measure(
    "action", "Reseat or replace the supply or fan and check its mains feed, then read the state again"
)


def analyze(run: RunView, *, slow_fan: float = 0.6) -> list[Finding]:
    """slow_fan: share of the median fan's speed below which a fan is slow: its neighbours run at 85 % or more."""
    last = latest(run.switches, ("scope", own("scope"))).unique(
        ["source", "scope", "key"], keep="last", maintain_order=True
    )
    return [
        f for part in last.partition_by("scope", "source", maintain_order=True) for f in _switch(run, part, slow_fan)
    ]


def _switch(run: RunView, part: pl.DataFrame, slow_fan: float) -> Iterator[Finding]:
    name = str(part["scope"][0])
    rows = {str(row["key"]): row for row in part.iter_rows(named=True)}
    failed = [key for key, row in rows.items() if _is_state(key) and str(row["value"]) not in {"OK", ""}]
    if failed:
        what = ", ".join(f"{key} is {rows[key]['value']}" for key in failed)
        yield _finding(
            run,
            name,
            rows[failed[0]],
            Severity.WARNING,
            f"{name}: {what}",
            Measure("failed", len(failed), "", 0),
            _MEND,
        )
    speeds = {key: _number(row["value"]) for key, row in rows.items() if key.startswith("fan#")}
    known = [speed for speed in speeds.values() if speed is not None]
    middle = float(np.median(known)) if len(known) >= 3 else 0.0
    for key, speed in speeds.items():
        if speed is not None and speed < slow_fan * middle:
            text = f"{name}: {key} turns at {speed:.0f} where its fans turn at {middle:.0f}"
            yield _finding(
                run,
                name,
                rows[key],
                Severity.WARNING,
                text,
                Measure("fan_speed", speed, "1/min", slow_fan * middle),
                _MEND,
            )
    unread = [key for key, row in rows.items() if _is_state(key) and not row["value"]]
    unread += [key for key, speed in speeds.items() if speed is None]
    unread += [key for key, row in rows.items() if key.endswith("power (W)") and _number(row["value"]) is None]
    temperature = rows.get("temperature (C)")
    if temperature is None or _number(temperature["value"]) is None:
        unread.append("temperature")
    if unread and len(rows) > len(unread):
        text = f"{name} does not tell {', '.join(unread)}: the sensor could not be read"
        yield _finding(run, name, next(iter(rows.values())), Severity.INFO, text, Measure("unread", len(unread), "", 0))


def _is_state(key: str) -> bool:
    return key.endswith(" status") or key.endswith("DC power")


def _number(text: object) -> float | None:
    try:
        value = float(str(text))
    except ValueError:
        return None
    return value if np.isfinite(value) else None


def _finding(
    run: RunView, name: str, row: dict[str, object], severity: Severity, text: str, *evidence: Measure
) -> Finding:
    return Finding(CODE, NAME, severity, text, run.where(row), (*evidence, Measure("port", name)))
