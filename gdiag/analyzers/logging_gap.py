"""Steps are missing from the log.

What it checks: distances between logged steps of over five times the usual one, in a log whose distances are regular.

Why it matters: what happened in the gap cannot be seen, and an event that begins in it is dated to its end.

What to do: look for the part of the log that is missing (another file, a crash of the logger); log every step.
"""

from __future__ import annotations

from gdiag.measures.run import RunView
from gdiag.measures.segments import gaps, interval
from gdiag.model import Finding, Measure, Severity

CODE = "GD002"
NAME = "logging-gap"
NEEDS: tuple[str, ...] = ("steps.loss|steps.grad_norm|steps.step_time",)


def analyze(run: RunView, *, factor: float = 5.0) -> list[Finding]:
    """At most one finding, info; `factor` is the least gap in usual distances."""
    steps = run.paths[0].frame["step"].to_numpy()
    found = gaps(steps, factor=factor)
    if not found:
        return []
    usual = interval(steps)
    before, after = max(found, key=lambda gap: gap[1] - gap[0])
    many = f"{len(found)} gaps in the log, the largest" if len(found) > 1 else "The log has a gap"
    said = f"{many} between steps {before} and {after} (usual distance {usual})"
    evidence = (
        Measure("gaps", len(found)),
        Measure("missing_steps", sum(b - a - usual for a, b in found), "step"),
        Measure("largest_gap", after - before, "step", factor * usual),
        Measure("log_interval", usual, "step"),
    )
    return [Finding(CODE, NAME, Severity.INFO, said, run.where(step=before, last_step=after), evidence)]
