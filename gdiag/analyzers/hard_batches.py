"""Single rows stand far above the level of the loss.

What it checks: rows more than six robust standard deviations above the run's own level, outside every spike, after which
the loss is where it was before. Reported once per run, with their rate: a few, or one that stands far out. Rows at equal
distances are a warning, unless they are the last of each epoch, where a batch may be small.

Why it matters: real training noise is skewed and heavy-tailed; such rows are batches that are hard to predict and harm
nothing. A rate that rises, or rows that come from one source, are worth a look at the data; chance knows no period, and
data that are read again each time do.

What to do: nothing, unless the rate rises; then print the samples of these steps and look for one source.
"""

from __future__ import annotations

import numpy as np

from gdiag.measures.repeats import equal_distance
from gdiag.measures.run import RunView
from gdiag.measures.segments import Ints, interval
from gdiag.model import Finding, Measure, Severity
from gdiag.reference.figures import whole

CODE = "GD106"
NAME = "hard-batches"
NEEDS: tuple[str, ...] = ("steps.loss",)


def analyze(run: RunView, *, rows: int = 3, far: float = 10.0) -> list[Finding]:
    """At most one finding.

    Thresholds:
        rows: fewest such rows that are worth saying …
        far: … unless one is so many robust deviations out.
    """
    view = run.losses[0]
    hard = view.hard_rows
    if not len(hard) or (len(hard) < rows and view.scan.z[hard].max() < far):
        return []
    curve = view.path.curve("loss")
    judged = max(1, len(curve) - view.scan.warmup)
    worst = int(hard[view.scan.z[hard].argmax()])
    rate = 1000 * len(hard) / judged
    times, place = whole(float(view.scan.z[worst])), f"at step {int(curve.step[worst])}"
    said = (
        f"{len(hard)} single rows stand over six times the noise above the loss's level ({rate:.2g} per 1,000 rows), "
        f"the farthest {times} times, {place}"
        if len(hard) > 1
        else f"A single row stands {times} times the noise above the loss's level, {place}, and the next is back"
    )
    where = run.where(curve.finite.row(int(hard[0])), last_step=int(curve.step[hard[-1]]))
    evidence = (
        Measure("rows", len(hard), "", rows),
        Measure("rate", rate, "1/1000 rows"),
        Measure("z", float(view.scan.z[worst]), "", 6.0),
        Measure("farthest_step", int(curve.step[worst]), "step"),
        Measure("noise", view.scan.noise, "nat"),
        Measure("steps", ", ".join(str(int(s)) for s in curve.step[hard[:20]])),
    )
    period = equal_distance(curve.step[hard], view.every)
    if period is None or _epochs_end(run, curve.step[hard]):
        return [Finding(CODE, NAME, Severity.INFO, said, where, evidence)]
    told = (*evidence, Measure("period", period, "step"))
    return [Finding(CODE, NAME, Severity.WARNING, f"{said}, every {period:.0f} steps", where, told)]


def _epochs_end(run: RunView, steps: Ints) -> bool:
    """Whether most of the rows stand within two rows of the place where the logged epoch turns."""
    epoch = run.series("epoch")
    if len(epoch) < 3:
        return False
    turns = epoch.step[1:][np.floor(epoch.value[1:]) > np.floor(epoch.value[:-1])]
    reach = 2 * interval(epoch.step)
    return len(turns) > 0 and float(np.mean([np.abs(turns - s).min() <= reach for s in steps])) > 0.5
