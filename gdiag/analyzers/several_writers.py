"""More than one writer wrote the log.

What it checks: two or more increasing sequences of steps that take turns in one file, or steps that hold several different
losses (ranks or micro-batches without a column that tells them apart).

Why it matters: two processes on one log are often two processes on one checkpoint folder. Mixed rows look like a
noisier run: each writer is judged alone, several values of one step are averaged.

What to do: find the second process (a job that was not stopped, a second launcher) before it overwrites checkpoints; log a
rank column, or write from one rank only.
"""

from __future__ import annotations

from gdiag.measures.run import RunView
from gdiag.model import Finding, Measure, Severity

CODE = "GD006"
NAME = "several-writers"
NEEDS: tuple[str, ...] = ("steps.step",)


def analyze(run: RunView, *, share: float = 0.5) -> list[Finding]:
    """At most one finding; `share` is the share of steps with several losses from which it is said."""
    found = run.trajectory
    steps = run.paths[0].frame["step"]
    if not len(steps):
        return []
    where = run.where(step=int(steps[0]), last_step=int(steps[-1]))
    if found.writers > 1:
        rows = [segment.rows for segment in found.segments]
        said = f"{found.writers} writers take turns in the log, with {', '.join(str(n) for n in rows)} steps each"
        evidence = (Measure("writers", found.writers, "", 1), Measure("judged_rows", max(rows)))
        return [Finding(CODE, NAME, Severity.WARNING, said, where, evidence)]
    if found.several >= share:
        said = f"{found.several:.0%} of the steps hold several different losses, which are averaged"
        return [Finding(CODE, NAME, Severity.INFO, said, where, (Measure("several", found.several, "", share),))]
    if found.repeated >= share:
        said = f"{found.repeated:.0%} of the steps are written more than once with the same loss"
        return [Finding(CODE, NAME, Severity.INFO, said, where, (Measure("repeated", found.repeated, "", share),))]
    return []
