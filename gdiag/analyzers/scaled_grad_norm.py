"""Recognises gradient norms logged with the loss scale in them.

What it checks: whether the logged gradient norm follows the loss scale (slope of their logarithms near 1): then it was
logged before unscaling, and all checks here use it divided by the scale.

Why it matters: healthy fp16 logs of this kind print norms of 2,500 to 450,000 that are 0.2 to 0.6 in truth; every change
of the scale looks like a spike, and limits on the raw figure mean nothing.

What to do: log the norm after unscaling; compare with other runs only after division.
"""

from __future__ import annotations

from gdiag.measures.run import RunView
from gdiag.model import Finding, Measure, Severity

CODE = "GD212"
NAME = "scaled-grad-norm"
NEEDS: tuple[str, ...] = ("steps.grad_norm", "steps.loss_scale")


def analyze(run: RunView) -> list[Finding]:
    """At most one finding, info."""
    found, logged = run.grad_scaling, run.series("grad_norm")
    if found is None or not found.scaled or not len(logged):
        return []
    return [
        Finding(
            CODE, NAME, Severity.INFO,
            f"Gradient norm is logged multiplied by the loss scale (slope {found.slope:.2f} over {found.changes} changes of "
            "the scale) and is used here divided by it",
            run.where(logged.finite.row(0), last_step=int(logged.step[-1])),
            (
                Measure("slope", found.slope, limit=1.0), Measure("changes", found.changes),
                Measure("scale_span", found.span),
            ),
        )
    ]  # fmt: skip
