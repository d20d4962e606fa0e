"""Finds resumes that start the fp16 loss scale anew.

What it checks: at every resume, the loss scale against the one logged there before, and leaps of it where no restart is
marked; then the steps that are skipped until it fits again.

Why it matters: a scaler that starts at 65536 or 2^32 skips one step after another until the scale fits; and where the
scaler's state was not loaded, the optimizer's often was not either.

What to do: save and load the scaler's state with the optimizer's.
"""

from __future__ import annotations

from gdiag.measures.resume_state import ScaleReset
from gdiag.measures.run import RunView
from gdiag.model import Finding, Measure, Severity

CODE = "GD118"
NAME = "scale-not-restored"
NEEDS: tuple[str, ...] = ("steps.loss_scale",)


def analyze(run: RunView, *, skips: float = 3.0, most: int = 10) -> list[Finding]:
    """A finding per place. skips: steps skipped, or halvings, from which it is a warning. most: places reported."""
    return [_finding(run, seen, skips) for seen in run.scale_resets[:most]]


def _finding(run: RunView, seen: ScaleReset, limit: float) -> Finding:
    lost = max(seen.halvings, seen.skips)
    after = f": {lost:.0f} steps are skipped until it fits" if lost else ""
    place = "After the resume at" if seen.at_restart else "From"
    return Finding(
        CODE, NAME, Severity.WARNING if lost >= limit else Severity.INFO,
        f"{place} step {seen.step} the loss scale is {seen.after:g} where {seen.before:g} is due{after}",
        run.where(seen.row, step=seen.step, last_step=seen.last_step),
        (
            Measure("kind", "scale_reset"),
            Measure("scale_before", seen.before),
            Measure("scale_after", seen.after),
            Measure("halvings", seen.halvings),
            Measure("skips", seen.skips, "step", limit=limit),
            Measure("at_restart", seen.at_restart),
        ),
    )  # fmt: skip
