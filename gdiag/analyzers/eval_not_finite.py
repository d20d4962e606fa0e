"""Finds validation losses that are NaN or infinite while training looks well.

What it checks: evaluations logged as NaN or infinite at steps where the training loss around them is finite.

Why it matters: checkpoints are chosen and runs are stopped by this figure; and what overflows in evaluation (longer
sequences, no dropout, another precision) may overflow in use.

What to do: evaluate the checkpoint before in FP32, look for empty batches (0/0), longer sequences and masks of only
padding.
"""

from __future__ import annotations

import numpy as np

from gdiag.measures.run import RunView
from gdiag.model import Finding, Measure, Severity

CODE = "GD111"
NAME = "eval-not-finite"
NEEDS: tuple[str, ...] = ("steps.eval_loss",)


def analyze(run: RunView, *, rows: int = 1) -> list[Finding]:
    """At most one finding. rows: non-finite evaluations needed."""
    evaluation, loss = run.series("eval_loss"), run.series("loss")
    bad = evaluation.nonfinite
    dead = loss.nonfinite.step
    # Once training itself is NaN, so is every evaluation after it: that is GD101.
    kept = bad.keep(bad.step < dead[0]) if len(dead) else bad
    if len(kept) < max(1, rows):
        return []
    total = len(evaluation) + len(bad)
    first, last = int(kept.step[0]), int(kept.step[-1])
    after = int((evaluation.step > first).sum())
    kind = "NaN" if np.isnan(kept.value).any() else "infinite"
    trained = bool((loss.step >= first).any())
    training = "while training loss is finite" if trained else "with no training loss logged from there on"
    return [
        Finding(
            CODE, NAME, Severity.WARNING,
            f"Validation loss is {kind} in {len(kept)} of {total} evaluations, first at step {first}, {training}",
            run.where(kept.row(0), step=first, last_step=last),
            (
                Measure("rows", len(kept), limit=rows),
                Measure("evaluations", total),
                Measure("finite_after", after),
                Measure("persists", after == 0),
                Measure("training_finite", trained),
            ),
        )
    ]  # fmt: skip
