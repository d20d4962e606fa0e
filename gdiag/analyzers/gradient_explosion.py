"""Finds gradients that grow out of their own level and stay there.

What it checks: whether the gradient norm (before clipping, without the loss scale) rises to `ratio` times its own
level and stays there for `rows` logged rows or to the end of the log. The level is the median of the rows before the
onset and is frozen there; a rise too slow to stand out row by row is found against the lowest level the run had.

Why it matters: clipping hides the size of such gradients but not their direction: every step goes where noise points,
and a loss that still looks calm follows within tens of steps. Fixed limits such as "above 1000" are of no use: healthy
fp16 logs print 1e3-1e5, and BLOOM-176B's worst spike was 960.

What to do: look at the layers in the evidence and at the learning rate at the onset; go back to the last checkpoint
before the onset, clip at the run's usual norm, lower the peak learning rate or lengthen warmup; residual scaling and
pre-norm when it returns from the start.

A norm that rises for good while much of what the run learns is still to come is told as information: gradients grow as
a small initialisation is left behind. So is one that comes back while the loss falls all the way, and one that rises too
slowly to stand out in any row while the loss ends lower than it was, and one with which the run learns a quarter of
all it ever learns.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from gdiag.analyzers.layer_evidence import layer_evidence, named_layer
from gdiag.measures.baseline import Floats, running_median
from gdiag.measures.changes import STILL_TO_COME, learned_after, learned_between
from gdiag.measures.gradients import Surge, explodes, lasting_rise, surges
from gdiag.measures.run import RunView
from gdiag.measures.segments import interval
from gdiag.model import Finding, Measure, Severity
from gdiag.reference.figures import multiple

CODE = "GD201"
NAME = "gradient-explosion"
NEEDS: tuple[str, ...] = ("steps.grad_norm|layers.grad_norm",)


def analyze(run: RunView, *, ratio: float = 10.0, rows: int = 50, z: float = 6.0, most: int = 5) -> list[Finding]:
    """One finding per explosion, at most `most`.

    Args:
        run: the run.
        ratio: peak over the level before.
        rows: logged rows above half of that, or a tenth of a shorter run, unless it lasts to the end.
        z: robust standard deviations above the level.
        most: findings.
    """
    curve = run.grad_norm
    rows = max(10, min(rows, len(curve) // 10))
    found: list[Finding] = []
    for surge in surges(curve.value, ratio / 2, z):
        if surge.ratio < ratio or not explodes(curve, surge, ratio / 2, rows):
            continue
        found.append(_finding(run, surge, ratio))
        if len(found) == most:
            return found
    rise = lasting_rise(curve.value, ratio)
    if rise is not None and not found:
        found.append(_finding(run, _slow(curve.value, rise[0]), ratio))
    return found


def _slow(value: Floats, row: int) -> Surge:
    """A rise too slow for any row to stand out, from `row` on."""
    # A spike on the way is no height that the norm rose to.
    peak = row + int(np.argmax(running_median(value[row:], 9, centre=True)))
    level = float(np.median(value[max(0, row - 20) : row]))
    return Surge(row, len(value) - 1, peak, float(value[peak]) / level, 0.0, len(value) - row, False, level)


def _finding(run: RunView, surge: Surge, limit: float) -> Finding:
    curve, back = run.grad_norm, surge.recovered
    first, last, peak, level = surge.first, surge.last, surge.peak, surge.level
    step, last_step = int(curve.step[first]), int(curve.step[last])
    attribution = run.attribution(step, int(curve.step[min(peak, first + 20)]))
    lost = _lost(run)
    rate = run.series("lr").at(step)
    learned = learned_after(run.series("loss"), step)
    end = lost[(lost > step) & (lost <= last_step + 50 * interval(curve.step))]
    # Numbers that go long after the rise, from a run that went on learning with the larger norm, have another cause.
    apart = len(end) and learned >= STILL_TO_COME and end[0] > int(curve.step[peak]) + 50 * interval(curve.step)
    ends = bool(len(end)) and not apart
    severity = Severity.WARNING if back and not ends else Severity.CRITICAL
    slow = not surge.z
    unharmed = (back or slow) and _loss_falls(run, step, last_step, parts=3 if back else 0)
    # Whatever became of the run later: gradients with which it learned much were not too large to learn with.
    meanwhile = learned_between(run.series("loss"), step, last_step)
    if not ends and (unharmed or (not back and learned >= STILL_TO_COME) or meanwhile >= STILL_TO_COME):
        severity = Severity.INFO
    tail = "and ends in values that are not finite" if ends else "and comes back" if back else "and does not come back"
    evidence = [
        Measure("ratio", surge.ratio, limit=limit),
        Measure("level_before", level),
        Measure("peak", float(curve.value[peak])),
        Measure("peak_step", int(curve.step[peak]), "step"),
        Measure("rows", surge.rows),
        Measure("recovered", back),
        Measure("ends_nonfinite", ends),
        Measure("learned_after", learned, limit=STILL_TO_COME),
        Measure("learned_meanwhile", meanwhile, limit=STILL_TO_COME),
    ]
    if back or slow:
        evidence.append(Measure("loss_falls_on" if back else "loss_ends_lower", unharmed))
    if not slow:
        evidence.append(Measure("z", surge.z))
    if rate is not None:
        evidence.append(Measure("lr_at_onset", rate))
    return Finding(
        CODE, NAME, severity,
        f"Gradient norm rises from {level:.3g} at step {step} to {float(curve.value[peak]):.3g} at step "
        f"{int(curve.step[peak])}, {multiple(surge.ratio)} times its level, {tail}",
        run.where(curve.finite.row(first), last_step=last_step, layer=named_layer(attribution)),
        (*evidence, *layer_evidence(attribution)),
    )  # fmt: skip


def _lost(run: RunView) -> NDArray[np.int64]:
    """Steps at which the norm is not finite and the step was taken: mixed precision skips a step that overflows, and goes on."""
    step = run.grad_norm.nonfinite.step
    skipped = np.zeros(len(step), dtype=bool)
    for stretch in run.nonfinite:
        if stretch.skipped:
            skipped |= (step >= stretch.onset) & (step <= stretch.last)
    return step[~skipped]


def _loss_falls(run: RunView, step: int, last: int, *, parts: int) -> bool:
    """Whether the loss inside the stretch `step` to `last`, in so many parts, and behind it lies lower each time by 5 %.

    Without parts the last quarter of the stretch is held against the rows before it.
    """
    loss = run.series("loss")
    first, end = (int(i) for i in np.searchsorted(loss.step, [step, last + 1]))
    inside = loss.value[first:end]
    later = [*np.array_split(inside, parts), loss.value[end : end + 50]] if parts else [inside[3 * len(inside) // 4 :]]
    stretches = [loss.value[max(0, first - 20) : first], *later]
    if min(map(len, stretches)) < 5:
        return False
    levels = [float(np.median(part)) for part in stretches]
    return all(below < 0.95 * above for above, below in pairwise(levels))
