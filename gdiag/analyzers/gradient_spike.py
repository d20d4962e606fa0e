"""Finds single gradients far above their level.

What it checks: gradient norms (before clipping, without the loss scale) that jump to `ratio` times their level for
fewer rows than an explosion, and whether the loss moved with them.

Why it matters: one large gradient is common and mostly harmless: in a healthy run 67 of 19,560 steps lay above six
robust standard deviations. Adam bounds the step, clipping bounds it further, and corrupted gradients raised the norm in
20 of 20 trials without any effect on the loss. A shock without a move of the loss that is far beyond the run's usual
ones deserves a look at ranks and data; it is no reason to roll back.

What to do: nothing when it is single and the loss is untouched. When they return, log the sample ids and the
per-layer, per-rank norms, clip at the usual norm or skip updates beyond six deviations.
"""

from __future__ import annotations

import numpy as np

from gdiag.analyzers.layer_evidence import layer_evidence, named_layer
from gdiag.measures.curves import Curve
from gdiag.measures.gradients import Surge, explodes, surges
from gdiag.measures.run import RunView
from gdiag.model import Finding, Measure, Severity
from gdiag.reference.figures import multiple

CODE = "GD206"
NAME = "gradient-spike"
NEEDS: tuple[str, ...] = ("steps.grad_norm|layers.grad_norm",)


def analyze(
    run: RunView, *, ratio: float = 5.0, z: float = 6.0, rows: int = 50, shock: float = 30.0, most: int = 3
) -> list[Finding]:
    """The largest spikes, info; warning for a shock the loss does not show.

    Args:
        run: the run.
        ratio: peak over the level before.
        z: robust standard deviations above the level.
        rows: from so many rows on, or a tenth of a shorter run, it is an explosion.
        shock: ratio from which a spike without a move of the loss is a warning.
        most: findings without a move of the loss; twice as many with one.
    """
    curve, loss = run.grad_norm, run.series("loss")
    rows = max(10, min(rows, len(curve) // 10))
    spikes = [s for s in surges(curve.value, ratio, z) if not explodes(curve, s, ratio, rows)]
    moved = [s for s in spikes if abs(_loss_z(loss, int(curve.step[s.first]), int(curve.step[s.last])) or 0.0) >= 4]
    chosen = sorted(moved, key=lambda s: -s.ratio)[: 2 * most]
    chosen += sorted((s for s in spikes if s not in chosen), key=lambda s: -s.ratio)[:most]
    return [_finding(run, curve, loss, s, ratio, shock, len(spikes)) for s in sorted(chosen, key=lambda s: s.first)]


def _finding(run: RunView, curve: Curve, loss: Curve, spike: Surge, ratio: float, shock: float, count: int) -> Finding:
    step, last_step = int(curve.step[spike.first]), int(curve.step[spike.last])
    attribution = run.attribution(step, last_step)
    loss_z = _loss_z(loss, step, last_step)
    alone = loss_z is not None and abs(loss_z) < 4
    severe = alone and spike.ratio >= shock and count <= 3 and run.steady_before(step)
    evidence = [
        Measure("ratio", spike.ratio, limit=ratio),
        Measure("z", spike.z),
        Measure("level_before", spike.level),
        Measure("peak", float(curve.value[spike.peak])),
        Measure("rows", spike.rows),
        Measure("recovered", spike.recovered),
        Measure("spikes", count),
    ]
    if loss_z is not None:
        evidence += [Measure("loss_z", loss_z, limit=4.0), Measure("loss_moved", not alone)]
    beside = "" if loss_z is None else ", the loss does not move" if alone else ", the loss moves with it"
    return Finding(
        CODE, NAME, Severity.WARNING if severe else Severity.INFO,
        f"Gradient norm jumps to {float(curve.value[spike.peak]):.3g}, {multiple(spike.ratio)} times its level, at step "
        f"{int(curve.step[spike.peak])} for {spike.rows} logged row{'s' if spike.rows != 1 else ''}{beside}",
        run.where(curve.finite.row(spike.first), last_step=last_step, layer=named_layer(attribution)),
        (*evidence, *layer_evidence(attribution)),
    )  # fmt: skip


def _loss_z(loss: Curve, step: int, last_step: int, rows: int = 60) -> float | None:
    """Largest deviation of the loss from its median before, from `step` to two rows after `last_step`, in robust deviations."""
    first, last = int(np.searchsorted(loss.step, step)), int(np.searchsorted(loss.step, last_step, side="right")) + 2
    past, here = loss.value[max(0, first - rows) : first], loss.value[first:last]
    if len(past) < 10 or not len(here):
        return None
    middle = float(np.median(past))
    spread = max(1.4826 * float(np.median(np.abs(past - middle))), 1e-9)
    return float((here.max() - middle) / spread)
