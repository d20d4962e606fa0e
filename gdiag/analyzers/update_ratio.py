"""Holds the size of the updates against the weights.

What it checks: the size of the update against the weights (update_norm / param_norm, per layer or for the network):
its surges to `surge` times their own level, and its level after warmup against 10^-4.5 to 10^-2.

Why it matters: the update, not the gradient, is what changes the model. In Marin 32B the update norm doubled before
gradient and loss moved; with Adam a second moment that lags behind (quiet gradients, then large ones) gives such updates
without any large gradient.

What to do: for surges beta2 0.95-0.98, update clipping (StableAdamW), a lower learning rate; for a level out of range
compare with the expected lr x 0.2..1 / RMS(weight) first.
"""

from __future__ import annotations

import numpy as np

from gdiag.measures.curves import Curve
from gdiag.measures.gradients import surges
from gdiag.measures.layers import Floats, Steps
from gdiag.measures.run import RunView
from gdiag.model import Finding, Measure, Severity
from gdiag.reference.figures import multiple

CODE = "GD209"
NAME = "update-ratio"
NEEDS: tuple[str, ...] = ("steps.update_norm|layers.update_norm",)


def analyze(
    run: RunView, *, surge: float = 4.0, z: float = 8.0, low: float = 3e-5, high: float = 1e-2, most: int = 5
) -> list[Finding]:
    """Surges of the update norm (warning), then levels out of range (info).

    Args:
        run: the run.
        surge: peak over the level before.
        z: robust standard deviations above the level.
        low: smallest usual update / weight after warmup.
        high: largest usual update / weight after warmup.
        most: findings of either kind.
    """
    return _surges(run, surge, z, most) + _levels(run, low, high, most)


def _surges(run: RunView, surge: float, z: float, most: int) -> list[Finding]:
    curve = run.update_norm
    found = []
    for s in [s for s in surges(curve.value, surge, z) if s.first >= min(100, len(curve) // 8)][:most]:
        step = int(curve.step[s.first])
        found.append(
            Finding(
                CODE, NAME, Severity.WARNING,
                f"Update norm rises to {curve.value[s.peak]:.3g}, {multiple(s.ratio)} times its level, at step {step}",
                run.where(curve.finite.row(s.first), last_step=int(curve.step[s.last])),
                (
                    Measure("ratio", s.ratio, limit=surge), Measure("z", s.z), Measure("rows", s.rows),
                    Measure("recovered", s.recovered), Measure("grad_lead", _lead(run.grad_norm, step), "step"),
                ),
            )
        )  # fmt: skip
    return found


def _lead(grad: Curve, step: int) -> int:
    """Steps by which the update is ahead of the next surge of the gradient norm; 0 when none follows within 50 rows."""
    onsets = [int(grad.step[s.first]) for s in surges(grad.value, 3.0)]
    ahead = [o - step for o in onsets if 0 <= o - step <= 50]
    return min(ahead, default=0)


def _levels(run: RunView, low: float, high: float, most: int) -> list[Finding]:
    found: list[tuple[float, Finding]] = []
    updates, params = run.layer_table("update_norm"), run.layer_table("param_norm")
    pairs: list[tuple[str | None, Steps, Floats]] = []
    if updates is not None and params is not None:
        place = {c.layer: i for i, c in enumerate(params.columns)}
        both, mine, theirs = np.intersect1d(updates.step, params.step, return_indices=True)
        for i, column in enumerate(updates.columns):
            if column.layer in place:
                weight = params.values(place[column.layer])[theirs]
                pairs.append((column.layer, both, updates.values(i)[mine] / np.where(weight > 0, weight, np.nan)))
    else:
        u, p = run.series("update_norm"), run.series("param_norm")
        both, mine, theirs = np.intersect1d(u.step, p.step, return_indices=True)
        pairs.append((None, both, u.value[mine] / np.where(p.value[theirs] > 0, p.value[theirs], np.nan)))
    for layer, step, ratio in pairs:
        late = ratio[len(ratio) // 4 :]
        late = late[np.isfinite(late) & (late > 0)]
        if len(late) < 20:
            continue
        level = float(np.median(late))
        if low <= level <= high:
            continue
        side, bound = ("above", high) if level > high else ("below", low)
        found.append(
            (
                abs(np.log(level / bound)),
                Finding(
                    CODE, NAME, Severity.INFO,
                    f"Updates{' of ' + layer if layer else ''} are {level:.1g} of the weights after warmup, {side} the usual "
                    f"{bound:.0e}",
                    run.where(step=int(step[len(step) // 4]), last_step=int(step[-1]), layer=layer),
                    (Measure("update_ratio", level, limit=bound),),
                ),
            )
        )  # fmt: skip
    return [f for _, f in sorted(found, key=lambda pair: -pair[0])[:most]]
