"""A GPU disappears from the telemetry or from the bus.

What it checks
    Samples of a GPU that end at least a minute and five readings before those of others on the same host, lines that say
    that the GPU is lost, and "fallen off the bus" without an Xid number.

Why it matters
    The job is dead or hangs, and the node needs hands.

What to do
    Drain the node, read its kernel log for Xid 79 and PCIe errors of the same minute, power-cycle it, reseat or replace the
    card when it happens again.
"""

from __future__ import annotations

import polars as pl

from gdiag.analyzers import gpu_place
from gdiag.measures import gpu_outliers
from gdiag.measures.run import RunView
from gdiag.model import Finding, Measure, Severity

CODE = "GD606"
NAME = "gpu-lost"
NEEDS: tuple[str, ...] = ("gpus.gpu|events.kind",)


def analyze(run: RunView, *, seconds: float = 60.0) -> list[Finding]:
    found = []
    if run.telemetry is not None:
        for gone in gpu_outliers.lost(run.telemetry.health.partial, seconds=seconds):
            where, _ = gpu_place.located(run, [gone.unit], gone.last_seen, gone.others_until)
            found.append(
                Finding(
                    CODE,
                    NAME,
                    Severity.CRITICAL,
                    f"{gpu_place.named([gone.unit], 0)} disappears from the telemetry {gone.others_until - gone.last_seen:.0f} s "
                    "before the others of its host",
                    where,
                    (
                        Measure("silent", round(gone.others_until - gone.last_seen, 1), "s", seconds),
                        Measure("told_by", "telemetry"),
                    ),
                )
            )
    said = run.events.filter(pl.col("kind") == "gpu_lost")
    found += [
        Finding(
            CODE, NAME, Severity.CRITICAL, f"the log says that a GPU is lost: {' '.join(str(row['text']).split())[:120]}",
            run.where(row, host=row["host"], gpu=row["gpu"], rank=row["rank"]),
            (Measure("told_by", "log line"), Measure("bus_id", row["bus_id"] or "not said")),
        )
        for row in said.iter_rows(named=True)
    ]  # fmt: skip
    return found
