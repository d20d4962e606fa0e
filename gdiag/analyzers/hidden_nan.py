"""Finds NaN losses that the logger turned into zeros.

What it checks: a loss of exactly 0.0 after losses well above zero, with a gradient norm that is NaN or itself exactly
zero in the same rows. HF Trainer's `logging_nan_inf_filter` leaves such zeros (and averages that look healthy) in place
of NaN. No other check reads these zeros as levels: those that a threshold of this check excuses are told as information.

Why it matters: the run is dead while its loss curve looks perfect.

What to do: set `logging_nan_inf_filter=False`; treat the first zero as the first NaN: roll back to before it, train in
BF16, and look for overflow or empty targets in its batch.
"""

from __future__ import annotations

from gdiag.measures.hidden_nan import LEAST_BEFORE, LEAST_ROWS, hidden_nan
from gdiag.measures.run import RunView
from gdiag.model import Finding, Measure, Severity

CODE = "GD116"
NAME = "hidden-nan"
NEEDS: tuple[str, ...] = ("steps.loss",)


def analyze(run: RunView, *, least_before: float = LEAST_BEFORE, rows: int = LEAST_ROWS) -> list[Finding]:
    """At most one finding.

    least_before: median loss of the ten rows before as a share of the first rows', below which zero is a possible loss.
    rows: zeros needed where no gradient norm is NaN. Zeros that these excuse are information: RunView.hidden_nan takes
    them out of every curve.
    """
    loss = run.logged("loss")
    alarming = hidden_nan(loss, run.logged("grad_norm"), least_before, rows)
    found = alarming or run.hidden_nan
    if found is None:
        return []
    severity = Severity.INFO if alarming is None else Severity.CRITICAL if found.nan_rows else Severity.WARNING
    first, last = int(found.steps[0]), int(found.steps[-1])
    why = (
        f", with a gradient norm of NaN in {found.nan_rows} of them" if found.nan_rows
        else ", with a gradient norm of exactly zero" if found.zero_rows
        else ""
    )  # fmt: skip
    return [
        Finding(
            CODE, NAME, severity,
            f"The loss is exactly 0.0 in {len(found.steps)} rows from step {first} on, after {found.before:.3f} nat{why}: NaN that the logger hides",
            run.where(loss.finite.row(found.first), step=first, last_step=last),
            (
                Measure("rows", len(found.steps), limit=rows),
                Measure("nan_grad_rows", found.nan_rows),
                Measure("zero_grad_rows", found.zero_rows),
                Measure("level_before", found.before, "nat"),
            ),
        )
    ]  # fmt: skip
