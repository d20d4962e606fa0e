"""Tells a range test of the learning rate from a training run.

What it checks: whether the logged rate grows by the same factor from row to row, a hundredfold or more, to the last row.

Why it matters: such a run looks for the rate at which training breaks (Smith 2017), so that a loss that rises at its end
and gradients that leave their range are its result and no fault; checks of both keep silent on it.

What to do: choose a peak rate well below the one at which the loss is lowest; a tenth of it is usual.
"""

from __future__ import annotations

import numpy as np

from gdiag.measures.baseline import running_median
from gdiag.measures.run import RunView
from gdiag.model import Finding, Measure, Severity

CODE = "GD308"
NAME = "range-test"
NEEDS: tuple[str, ...] = ("steps.lr",)


def analyze(run: RunView, *, rows: int = 15) -> list[Finding]:
    """At most one finding. rows: logged rows over which the loss is smoothed before its lowest place is named."""
    schedule = run.schedule
    if schedule is None or schedule.shape != "range-test":
        return []
    rate, loss = run.series("lr"), run.series("loss")
    evidence = [Measure("lr_at_onset", float(rate.value[0])), Measure("lr_peak", schedule.peak)]
    said = f"The learning rate grows exponentially from {float(rate.value[0]):.3g} to {schedule.peak:.3g} to the end of the log, as in a range test"
    if len(loss) >= 2 * rows:
        smooth = running_median(loss.value, rows)[rows - 1 :]
        lowest = rate.at(int(loss.step[rows // 2 + int(np.argmin(smooth))]))
        if lowest is not None:
            evidence.append(Measure("lr_at_lowest_loss", lowest))
            said += f"; the loss is lowest at a rate of {lowest:.2g}"
    where = run.where(step=schedule.first_step, last_step=schedule.last_step)
    return [Finding(CODE, NAME, Severity.INFO, said, where, tuple(evidence))]
