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
slowly to stand out in any row while the loss ends lower than it was.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from gdiag.analyzers.layer_evidence import layer_evidence, named_layer
from gdiag.measures.baseline import running_median
from gdiag.measures.changes import STILL_TO_COME, learned_after
from gdiag.measures.gradients import Surge, lasting_rise, surges
from gdiag.measures.run import RunView
from gdiag.model import Finding, Measure, Severity

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
        high = int(np.count_nonzero(curve.value[surge.first : surge.last + 1] > 0.5 * ratio * surge.level))
        if surge.ratio < ratio or (high < rows and not (high >= 3 and _ends_high(run, surge, ratio))):
            continue
        found.append(
            _finding(run, surge.first, surge.last, surge.peak, surge.level, ratio, surge.z, high, surge.recovered)
        )
        if len(found) == most:
            return found
    rise = lasting_rise(curve.value, ratio)
    if rise is not None and not found:
        row, _ = rise
        # A spike on the way is no height that the norm rose to.
        peak = row + int(np.argmax(running_median(curve.value[row:], 9, centre=True)))
        level = float(np.median(curve.value[max(0, row - 20) : row]))
        found.append(_finding(run, row, len(curve) - 1, peak, level, ratio, None, len(curve) - row, False))
    return found


def _ends_high(run: RunView, surge: Surge, ratio: float) -> bool:
    """Whether the run ends in the surge: at half of `ratio` times the level or more, or in values that are not finite."""
    curve = run.grad_norm
    if surge.recovered:
        return False
    tail = float(np.median(curve.value[max(surge.first, surge.last - 9) : surge.last + 1]))
    return tail >= 0.5 * ratio * surge.level or bool((curve.nonfinite.step > curve.step[surge.last]).any())


def _finding(
    run: RunView, first: int, last: int, peak: int, level: float, limit: float, z: float | None, rows: int, back: bool
) -> Finding:
    curve = run.grad_norm
    step, last_step, ratio = int(curve.step[first]), int(curve.step[last]), float(curve.value[peak]) / level
    attribution = run.attribution(step, int(curve.step[min(peak, first + 20)]))
    lost = curve.nonfinite.step
    ends = bool(
        len(lost) and ((lost > step) & (lost <= last_step + 50 * max(1, int(curve.step[1] - curve.step[0])))).any()
    )
    rate = run.series("lr").at(step)
    learned = learned_after(run.series("loss"), step)
    severity = Severity.WARNING if back and not ends else Severity.CRITICAL
    unharmed = _loss_falls_on(run, step, last_step) if back else z is None and _loss_ends_lower(run, step)
    if not ends and (unharmed or (not back and learned >= STILL_TO_COME)):
        severity = Severity.INFO
    tail = "and ends in values that are not finite" if ends else "and comes back" if back else "and does not come back"
    evidence = [
        Measure("ratio", ratio, limit=limit),
        Measure("level_before", level),
        Measure("peak", float(curve.value[peak])),
        Measure("peak_step", int(curve.step[peak]), "step"),
        Measure("rows", rows),
        Measure("recovered", back),
        Measure("ends_nonfinite", ends),
        Measure("learned_after", learned, limit=STILL_TO_COME),
        *([Measure("loss_falls_on", unharmed)] if back or z is None else []),
    ]
    if z is not None:
        evidence.append(Measure("z", z))
    if rate is not None:
        evidence.append(Measure("lr_at_onset", rate))
    return Finding(
        CODE, NAME, severity,
        f"Gradient norm rises from {level:.3g} at step {step} to {float(curve.value[peak]):.3g} at step "
        f"{int(curve.step[peak])}, {ratio:.3g} times its level, {tail}",
        run.where(curve.finite.row(first), last_step=last_step, layer=named_layer(attribution)),
        (*evidence, *layer_evidence(attribution)),
    )  # fmt: skip


def _loss_ends_lower(run: RunView, step: int) -> bool:
    """Whether the last quarter of the loss from `step` on lies below the rows before it."""
    loss = run.series("loss")
    first = int(np.searchsorted(loss.step, step))
    before, after = loss.value[max(0, first - 20) : first], loss.value[first + 3 * (len(loss) - first) // 4 :]
    return min(len(before), len(after)) >= 5 and bool(np.median(after) < np.median(before))


def _loss_falls_on(run: RunView, step: int, last: int) -> bool:
    """Whether the loss inside and after the stretch `step` to `last` lies well below that before: learning goes on."""
    loss = run.series("loss")
    first, end = (int(i) for i in np.searchsorted(loss.step, [step, last + 1]))
    before, inside, after = loss.value[max(0, first - 20) : first], loss.value[first:end], loss.value[end : end + 50]
    if min(len(before), len(inside) // 3, len(after)) < 5:
        return False
    levels = [float(np.median(part)) for part in (before, *np.array_split(inside, 3), after)]
    return all(later < 0.95 * earlier for earlier, later in pairwise(levels))
