"""Finds parameter norms that begin to shrink together.

What it checks: whether the norms of most layers (or that of the whole network) begin to fall at one place, `faster` times
faster than before whatever the learning rate, and lose a fifth or more until the end (`overall`). Embeddings and norm
layers are not judged. Of 140 small networks really trained, no healthy one does.

Why it matters: updates add to a norm, only decay takes from all of them at once: norms that shrink together tell of a
weight decay far too large, or added to the gradient as well, since a change of the settings. The loss follows within
a few dozen steps and the gradients of the weakest layers fade, which looks like saturated attention.

What to do: compare weight decay (value, groups, decoupled or not) before and after that step; go back to a checkpoint
before it, for what has decayed does not come back by itself.
"""

from __future__ import annotations

import numpy as np

from gdiag.measures.growth import accelerated, rate_at, weight_logs
from gdiag.measures.parameters import whole_network
from gdiag.measures.run import RunView
from gdiag.model import Finding, Measure, Severity

CODE = "GD215"
NAME = "parameter-shrink"
NEEDS: tuple[str, ...] = ("layers.param_norm|steps.param_norm",)


def analyze(run: RunView, *, faster: float = 5.0, overall: float = 0.8) -> list[Finding]:
    """At most one finding.

    Args:
        run: the run.
        faster: pace of the median layer after over before.
        overall: norm of the median layer at the end over that at the turn.
    """
    table = run.layer_table("param_norm")
    whole = table is None
    if table is None and len(run.series("param_norm")) >= 80:
        table = whole_network(run.series("param_norm"))
    if table is None:
        return []
    logs, judged = weight_logs(table)
    found = accelerated(-logs, rate_at(table.step, run.series("lr")), least=-float(np.log(overall)))
    if found is None or found.ratio < faster or found.layers < 0.7 * logs.shape[1] or found.growth < -np.log(overall):
        return []
    step, left = int(table.step[found.row]), float(np.exp(-found.growth))
    moved = round(found.layers / logs.shape[1] * judged)
    who = "The parameter norm shrinks" if whole else f"Parameter norms of {moved} of {judged} layers shrink"
    ends, was = ("ends", "it was") if whole else ("end", "they were")
    return [
        Finding(
            CODE, NAME, Severity.WARNING if run.steady_before(step) else Severity.INFO,
            f"{who} from step {step} on and {ends} at {left:.2g} of what {was} there",
            run.where(table.row_near(step), step=step, last_step=int(table.step[-1])),
            (
                Measure("ratio", left, limit=overall), Measure("pace_ratio", min(found.ratio, 1000.0), limit=faster),
                Measure("layers_moved", moved), Measure("layers_total", judged),
            ),
        )
    ]  # fmt: skip
