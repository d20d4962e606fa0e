"""A logged metric never changes.

What it checks: loss, gradient norm, validation loss and throughput columns whose values are one constant over the whole
log or, for the loss, over its last fifth and fifty rows at least. A loss of four digits and more that stands still over a
whole log tells it in ten rows.

Why it matters: a constant column is not measured: checks on it say nothing. A loss that stops changing to the last digit
means that no training happens or that the logger repeats itself.

What to do: log the measured value; look whether the value is read before it is computed, or detached from the step.
"""

from __future__ import annotations

from gdiag.measures.run import RunView
from gdiag.measures.staleness import Flat, longest_flat
from gdiag.model import Finding, Measure, Severity

CODE = "GD004"
NAME = "dead-metric"
NEEDS: tuple[str, ...] = ("steps.loss|steps.grad_norm|steps.eval_loss|steps.tokens_per_s",)
COLUMNS = ("loss", "grad_norm", "eval_loss", "tokens_per_s")


def analyze(run: RunView, *, rows: int = 50, share: float = 0.2, exact: int = 10) -> list[Finding]:
    """One finding for each column.

    rows: fewest equal rows. share: share of the log at whose end the loss stands still. exact: fewest rows of a whole log whose
    loss is the same to four digits and more.
    """
    findings: list[Finding] = []
    for name in COLUMNS:
        curve = run.series(name)
        flat = longest_flat(curve)
        if flat is None:
            continue
        whole = flat.rows >= 0.99 * len(curve)
        enough = (
            exact if name == "loss" and whole and len(f"{flat.value:.6g}".strip("-0.").replace(".", "")) > 3 else rows
        )
        if flat.rows < enough:
            continue
        to_end = name == "loss" and flat.last == len(curve) - 1 and flat.rows >= share * len(curve)
        if not whole and not to_end:
            continue
        severity = Severity.WARNING if name == "loss" else Severity.INFO
        findings.append(_finding(run, name, flat, severity, whole, rows))
    return findings


def _finding(run: RunView, name: str, flat: Flat, severity: Severity, whole: bool, rows: int) -> Finding:
    curve = run.series(name)
    first, last = int(curve.step[flat.first]), int(curve.step[flat.last])
    over = "over the whole log" if whole else f"from step {first} to the end"
    said = f"{name} is {flat.value:.6g} {over} ({flat.rows} rows)"
    evidence = (Measure("column", name), Measure("rows", flat.rows, "", rows), Measure("value", flat.value))
    return Finding(CODE, NAME, severity, said, run.where(curve.finite.row(flat.first), last_step=last), evidence)
