"""GPU memory errors: uncorrectable ECC errors, row remapping that waits or has failed, bursts of corrected errors.

What it checks
    Rises of the uncorrected ECC counter, counts that stand above zero from the first sample, pending and failed row
    remaps, more than `corrected` corrected errors gained during the log. Counters that are not logged are not zero errors.

Why it matters
    An uncorrectable error has already damaged data or killed the process that owned it; a failed remap means that the card
    has no spare rows left where it needs one.

What to do
    Drain the node; reset the GPU so that a pending remap takes effect; replace it when a remap failed or errors return
    after the reset. Go back to a checkpoint from before the error.
"""

from __future__ import annotations

import polars as pl

from gdiag.analyzers import gpu_place
from gdiag.measures import gpu_outliers
from gdiag.measures.gpu_outliers import EccStep
from gdiag.measures.run import RunView
from gdiag.model import Finding, Measure, Severity

CODE = "GD403"
NAME = "ecc-error"
NEEDS: tuple[str, ...] = ("gpus.ecc_uncorrected|gpus.ecc_corrected|gpus.remap_failure|gpus.remap_pending",)


def analyze(run: RunView, *, corrected: float = 1000.0) -> list[Finding]:
    view = run.telemetry
    if view is None:
        return []
    found = [
        _step(run, step, corrected)
        for step in gpu_outliers.ecc_steps(view.health.partial)
        if not step.corrected or (not step.from_start and step.after - step.before >= corrected)
    ]
    return found + _remaps(run)


def _step(run: RunView, step: EccStep, corrected: float) -> Finding:
    where, _ = gpu_place.located(run, [step.unit], step.time, step.time)
    kind = "corrected" if step.corrected else "uncorrectable"
    gained = step.after - step.before
    if step.from_start:
        message = f"{gpu_place.named([step.unit], 0)} counts {step.after:.0f} {kind} ECC errors from the first sample on: they are older than this log"
        severity = Severity.INFO
    else:
        message = f"{gpu_place.named([step.unit], 0)} reports {gained:.0f} {kind} ECC error{'s' if gained != 1 else ''}"
        severity = Severity.WARNING if step.corrected else Severity.CRITICAL
    evidence = (
        Measure(f"{kind}_errors", gained if not step.from_start else step.after, "", corrected if step.corrected else 0.0),
        Measure("before", step.before), Measure("after", step.after), Measure("from_start", step.from_start),
    )  # fmt: skip
    return Finding(CODE, NAME, severity, message, where, evidence)


def _remaps(run: RunView) -> list[Finding]:
    view = run.telemetry
    assert view is not None
    found = []
    damaged = pl.col("remap_failure") | pl.col("remap_pending") | (pl.col("remap_uncorrectable") > 5)
    for row in view.health.per_gpu.filter(damaged).iter_rows(named=True):
        unit = (row["host"], row["gpu"])
        where, _ = gpu_place.located(run, [unit], row["first_time"], row["last_time"])
        rows = Measure("remapped_rows", row["remap_uncorrectable"] or 0, "row", 5.0)
        if row["remap_failure"]:
            found.append(
                Finding(
                    CODE,
                    NAME,
                    Severity.CRITICAL,
                    f"{gpu_place.named([unit], 0)} failed to remap a memory row",
                    where,
                    (rows, Measure("remap", "failed")),
                )
            )
        elif row["remap_pending"]:
            found.append(
                Finding(
                    CODE,
                    NAME,
                    Severity.WARNING,
                    f"{gpu_place.named([unit], 0)} waits for a reset to remap a memory row",
                    where,
                    (rows, Measure("remap", "pending")),
                )
            )
        else:
            found.append(
                Finding(
                    CODE,
                    NAME,
                    Severity.WARNING,
                    f"{gpu_place.named([unit], 0)} has {row['remap_uncorrectable']:.0f} memory rows remapped after uncorrectable errors",
                    where,
                    (rows,),
                )
            )
    return found
