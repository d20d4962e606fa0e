"""Finds NaN losses that the logger turned into zeros.

What it checks: a loss of exactly 0.0 after losses well above zero, with a gradient norm that is NaN or itself exactly
zero in the same rows. HF Trainer's `logging_nan_inf_filter` leaves such zeros (and averages that look healthy) in place
of NaN.

Why it matters: the run is dead while its loss curve looks perfect.

What to do: set `logging_nan_inf_filter=False`; treat the first zero as the first NaN: roll back to before it, train in
BF16, and look for overflow or empty targets in its batch.
"""

from __future__ import annotations

import numpy as np

from gdiag.measures.run import RunView
from gdiag.model import Finding, Measure, Severity

CODE = "GD116"
NAME = "hidden-nan"
NEEDS: tuple[str, ...] = ("steps.loss",)


def analyze(run: RunView, *, least_before: float = 0.05, rows: int = 3) -> list[Finding]:
    """At most one finding.

    least_before: median loss [nat] of the ten rows before, below which zero is a possible loss. rows: zeros needed where
    no gradient norm is NaN.
    """
    loss, grad = run.series("loss"), run.series("grad_norm")
    zero = np.flatnonzero(loss.value == 0.0)
    zero = zero[zero >= 3]
    if not len(zero):
        return []
    first = int(zero[0])
    before = float(np.median(loss.value[max(0, first - 10) : first]))
    if before < least_before or np.diff(loss.value[max(0, first - 10) : first]).max(initial=0.0) == 0.0:
        return []
    steps = loss.step[zero]
    nan = int(np.isin(steps, grad.nonfinite.step).sum())
    still = int(np.isin(steps, grad.step[grad.value == 0.0]).sum())
    logged = len(grad) + len(grad.nonfinite) > 0
    if not nan and (len(zero) < rows or (logged and still < 0.8 * len(zero))):
        return []
    why = (
        f"with a gradient norm of NaN in {nan} of them"
        if nan
        else "with a gradient norm of exactly zero"
        if still
        else ""
    )
    return [
        Finding(
            CODE, NAME, Severity.CRITICAL if nan else Severity.WARNING,
            f"The loss is exactly 0.0 in {len(zero)} rows from step {int(steps[0])} on, after {before:.3f} nat{', ' if why else ''}{why}: NaN that the logger hides",
            run.where(loss.finite.row(first), step=int(steps[0]), last_step=int(steps[-1])),
            (
                Measure("rows", len(zero), limit=rows),
                Measure("nan_grad_rows", nan),
                Measure("zero_grad_rows", still),
                Measure("level_before", before, "nat", limit=least_before),
            ),
        )
    ]  # fmt: skip
