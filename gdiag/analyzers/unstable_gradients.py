"""Measures how unsteady the gradient norm becomes.

What it checks: how unsteady the gradient norm is from one row to the next, in quarters of the run: rough (a typical
change of `rough` in log units or more) late in the run and at least `growth` times rougher than an earlier quarter, or
rough while the level rose `level`-fold.

Why it matters: as training settles the noise of the gradient norm falls (measured: 0.25 to 0.12 in healthy runs, 0.40 to
0.26 with tiny batches); with a learning rate beyond the edge of stability it stays or grows (0.44 to 2 and more), long
before or without any spike in the loss.

Three kinds of run are told as information. One whose loss still falls in its second half (by 5 %), with a gradient norm
no larger than before. One that is rough from its first steps, as small batches with heavy tails are, and learns on while
the norm grows. One that has learned nearly all there is (its loss ends below 28 % of its start and within a fifth of
its best): the few samples that are still wrong make up what gradient is left, which jumps from batch to batch. Norms that
end 30 % calmer than they began, at their old level, are told nowhere.

What to do: halve the peak learning rate or lengthen warmup, and watch this figure in the first hundred steps; a larger
batch and clipping at the usual norm treat the symptom.
"""

from __future__ import annotations

import numpy as np

from gdiag.measures.changes import STILL_TO_COME, learned_after
from gdiag.measures.gradients import lasting_rise, roughness, surges
from gdiag.measures.layers import Floats
from gdiag.measures.run import RunView
from gdiag.model import Finding, Measure, Severity
from gdiag.reference.figures import multiple

CODE = "GD213"
NAME = "unstable-gradients"
NEEDS: tuple[str, ...] = ("steps.grad_norm|layers.grad_norm",)


CALMED = 0.7
"""Roughness of the last quarter over that of the first below which gradients have settled: small batches end at 0.65
(0.40 to 0.26), runs whose learning rate is too high at 0.8 and above."""
IMPROVING = 0.05
"""Share of the loss by which its last fifth lies below the middle of the run where it still falls, …"""
NEARLY_LEARNED = 0.28
"""… of its start below which the loss ends where nearly all is learned …"""
AT_BEST = 1.2
"""… and its end over its lowest tenth. Of 25 rough runs of small networks really trained, the 4 healthy ones end at
0.02-0.17 of their start and the 21 faulty ones at 0.47 and above, so that the limit lies half-way in logarithms (a network
with batch norm that was looked at later ends at 0.22); three of the former fall by 15-27 % after their middle, one of the
latter does."""
LEAST_ROWS = 40
"""Losses needed to tell either."""
DISTURBED = 10.0
"""Peak over level of a surge that is the onset in a run that is rough from its start."""


def analyze(
    run: RunView, *, rough: float = 0.4, growth: float = 1.3, level: float = 5.0, z: float = 4.0
) -> list[Finding]:
    """At most one finding.

    Args:
        run: the run.
        rough: typical change from row to row in log units, in the later half.
        growth: later over earlier roughness.
        level: growth of the norm itself that counts as well.
        z: rank-sum score of the roughest against the calmest quarter before it.
    """
    curve = run.grad_norm
    found = roughness(curve.value)
    if found is None:
        return []
    late = max(found.quarters[2:])
    rougher = found.growth >= growth and found.z >= z
    if late < rough or (not rougher and found.level_growth < level):
        return []
    if found.quarters[3] < CALMED * found.quarters[0] and found.level_growth < level:
        return []
    row = found.onset or _first_disturbance(curve.value)
    step = int(curve.step[row])
    rate, rates = run.series("lr").at(step), run.series("lr").value
    improving = _improving(run.series("loss").value)
    learned = learned_after(run.series("loss"), step)
    calm = improving if found.level_growth < level else not rougher and learned >= STILL_TO_COME
    calm = calm or _nearly_learned(run.series("loss").value)
    evidence = [
        Measure("loss_improving", improving),
        Measure("roughness", late, limit=rough),
        Measure("roughness_before", min(found.quarters)),
        Measure("growth", found.growth, limit=growth),
        Measure("level_growth", found.level_growth, limit=level),
        Measure("z", found.z, limit=z),
        Measure("from_start", found.onset == 0),
        Measure("learned_after", learned, limit=STILL_TO_COME),
    ]
    if rate is not None and len(rates) and rates.max() > 0:
        evidence += [Measure("lr_at_onset", rate), Measure("lr_share_of_peak", rate / float(rates.max()))]
    return [
        Finding(
            CODE, NAME, Severity.INFO if calm else Severity.WARNING,
            f"Gradient norm changes by a factor of {np.exp(late):.3g} from row to row late in the run, "
            f"{multiple(found.growth)} times rougher than at its calmest, and its level rose {multiple(found.level_growth)}-fold",
            run.where(curve.finite.row(row), last_step=int(curve.step[-1])),
            tuple(evidence),
        )
    ]  # fmt: skip


def _first_disturbance(value: Floats) -> int:
    """Row of the first large surge or lasting rise of a run that is rough from its start; 0 when there is none."""
    rows = [s.first for s in surges(value) if s.ratio >= DISTURBED]
    rise = lasting_rise(value)
    return min([*rows, *([rise[0]] if rise else [])], default=0)


def _improving(loss: Floats) -> bool:
    """Whether the loss still falls in the second half: its last fifth is well below the middle of the run."""
    if len(loss) < LEAST_ROWS:
        return False
    tenths = _tenths(loss)
    middle, last = float(np.mean(tenths[3:6])), float(np.mean(tenths[8:]))
    return last < middle - IMPROVING * abs(middle)


def _nearly_learned(loss: Floats) -> bool:
    """Whether the loss ends far below its start and at its best: a few samples that are still wrong make up what
    gradient is left, and it jumps from batch to batch."""
    if len(loss) < LEAST_ROWS:
        return False
    tenths = _tenths(loss)
    return 0 <= tenths[-1] <= min(NEARLY_LEARNED * float(np.median(loss[:5])), AT_BEST * min(tenths))


def _tenths(loss: Floats) -> list[float]:
    return [float(np.median(part)) for part in np.array_split(loss, 10)]
