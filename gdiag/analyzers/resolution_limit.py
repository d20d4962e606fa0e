"""What this log can show is limited.

What it checks: logging every N steps, exports that hold a sample of the steps, losses averaged over several steps or over
ranks, losses rounded more coarsely than their noise.

Why it matters: an event shorter than about three logged rows can be missed or looks smaller than it was, onsets are known to
one interval only, and whether loss or gradient moved first cannot be said.

What to do: log every step, at least loss, gradient norm and learning rate; export the full history instead of a sample.
"""

from __future__ import annotations

import re

from gdiag.measures.baseline import resolution
from gdiag.measures.run import RunView
from gdiag.measures.segments import interval, regular_share
from gdiag.model import Finding, Measure, Severity

CODE = "GD007"
NAME = "resolution-limit"
NEEDS: tuple[str, ...] = ("steps.loss",)
ROWS_SEEN = 3
"""A spike of fewer rows is told from a hard batch only by its size."""


def analyze(run: RunView, *, every: int = 2, rounded: float = 1.0) -> list[Finding]:
    """At most one finding, info.

    every: log interval in steps from which it is said. rounded: rounding step over noise from which it is said.
    """
    curve = run.series("loss")
    if len(curve) < 10:
        return []
    usual = interval(curve.step)
    limits: list[str] = []
    unit = run.run.config.get("step_unit")
    batch = run.run.config.get("batch_size")
    if unit is not None:  # rows lie a batch or more apart: only the batch's size tells how many optimizer steps that is
        usual = max(1, round(usual / batch)) if isinstance(batch, int | float) and batch > 0 else 1
    measures = [Measure("log_interval", usual, "step", every)]
    regular = regular_share(curve.step)
    if regular < 0.5 and unit is None:
        usual = max(1, round(float(curve.step[-1] - curve.step[0]) / (len(curve) - 1)))
        limits.append(f"the log holds a sample of the steps, about one in {usual}")
        measures.append(Measure("regular_share", regular, "", 0.5))
    elif usual >= every:
        limits.append(f"the loss is logged every {usual} {'' if unit is None else 'optimizer '}steps")
    notes = {note for i in run.run.sources if i < len(run.records.sources) for note in run.records.sources[i].notes}
    notes = {
        note for note in notes if "not used:" not in note and "not optimizer steps" not in note
    }  # columns' names, units
    limits += sorted(note for note in notes if re.search(r"averag|\bsampled\b", note, re.IGNORECASE))
    if run.trajectory.basis == "ranks":
        limits.append("the loss is the median over ranks")
    step = resolution(curve.value)
    noise = run.losses[0].scan.noise
    if step > rounded * noise > 0:
        limits.append(f"the loss is rounded to {step:.2g}")
        measures.append(Measure("rounding", step, "nat", rounded * noise))
    if not limits:
        return []
    seen = f": events shorter than about {ROWS_SEEN * usual} steps can be missed" if usual > 1 else ""
    said = f"{'; '.join(limits)}{seen}"
    where = run.where(step=int(curve.step[0]), last_step=int(curve.step[-1]))
    measures.append(Measure("shortest_event", ROWS_SEEN * usual, "step"))
    return [Finding(CODE, NAME, Severity.INFO, said[0].upper() + said[1:], where, tuple(measures))]
