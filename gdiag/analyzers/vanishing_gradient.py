"""Finds gradients that fade towards the input, or altogether.

What it checks: whether the gradient shrinks geometrically from the loss towards the input until the first block gets
less than `share` of what the head gets, or less than `steep` at half or less from block to block (of 154 small networks
really trained, no healthy one falls so to less than 0.03, all 10 whose gradients vanish to less than 1e-5); and whether the
whole gradient fades to a thousandth of what it was while the loss stands still.

Why it matters: layers below 1e-6 of the head do not learn in any reasonable time, whatever the optimizer divides by:
the network is as deep as its last blocks. It is told from dead or frozen layers by its shape: a decay through the blocks
instead of an edge.

A profile that is sound for a twentieth of the run or longer and fades later is a consequence of what happened then, and info; so is one that fades in the first updates
while the loss goes above its start.

What to do: residual connections with scaling, pre-norm instead of post-norm, an activation that does not saturate (SiLU,
GELU), an initialization scaled with depth; train a two-block and a deep version for 50 steps and compare the profile
before anything else.
"""

from __future__ import annotations

import numpy as np

from gdiag.measures.depth import profile
from gdiag.measures.rate_limit import worse_than_start
from gdiag.measures.run import RunView
from gdiag.model import Finding, Measure, Severity

CODE = "GD202"
NAME = "vanishing-gradient"
NEEDS: tuple[str, ...] = ("layers.grad_norm|steps.grad_norm",)


def analyze(
    run: RunView,
    *,
    share: float = 1e-6,
    monotone: float = 0.75,
    decades: float = 0.3,
    steep: float = 1e-3,
    fade: float = 1e-3,
) -> list[Finding]:
    """At most one finding.

    Args:
        run: the run.
        share: gradient of the shallowest block over that of the head.
        monotone: share of neighbouring blocks whose gradient does not grow towards the input.
        decades: loss per block, in powers of ten, that counts in a shallow network as well.
        steep: gradient of the shallowest block over that of the head there.
        fade: late over early gradient norm of the whole network.
    """
    return _by_depth(run, share, monotone, decades, steep) or _fading(run, fade)


def _by_depth(run: RunView, share: float, monotone: float, decades: float, steep: float) -> list[Finding]:
    table = run.layer_table("grad_norm")
    found = profile(table) if table is not None else None
    if table is None or found is None or found.monotone < monotone or not found.geometric:
        return []
    total = found.ratio <= share
    if not total and (found.ratio > steep or found.decades < decades):
        return []
    severity = Severity.CRITICAL if total else Severity.WARNING
    # A network that was sound and whose loss went above its start was wrecked by its first updates: what they were too large for.
    sound = found.onset > table.step[min(1, len(table.step) - 1)]
    own = found.from_start and not (sound and worse_than_start(run.series("loss")) is not None)
    fall = f"{found.decades:.1f} decades a block" if found.decades > 0 else "from block to block"
    since = f"since step {found.onset}" if sound else "from the start"
    return [
        Finding(
            CODE, NAME, severity if own else Severity.INFO,
            f"Gradient vanishes towards the input {since}: {found.shallow} gets {found.ratio:.1g} of the head's, "
            f"falling {fall} over {len(found.depth)} blocks",
            run.where(table.row_near(found.onset), step=found.onset, last_step=int(table.step[-1]), layer=found.shallow),
            (
                Measure("ratio", found.ratio, limit=share),
                Measure("decades_per_block", found.decades),
                Measure("monotone", found.monotone, limit=monotone),
                Measure("blocks", len(found.depth)),
                Measure("level_head", found.head),
                Measure("level_shallow", found.level[0]),
                Measure("from_start", own),
            ),
        )
    ]  # fmt: skip


def _fading(run: RunView, fade: float) -> list[Finding]:
    curve, loss = run.grad_norm, run.series("loss")
    if len(curve) < 100 or len(loss) < 100:
        return []
    tenths = np.array_split(curve.value, 10)
    early, late = float(np.median(tenths[1])), float(np.median(tenths[-1]))
    losses = [float(np.median(part)) for part in np.array_split(loss.value, 10)]
    flat = losses[-1] > 0.9 * losses[1] and losses[-1] > 0.5 * losses[0]
    if early <= 0 or late > fade * early or not flat:
        return []
    row = int(np.argmax(curve.value < np.sqrt(fade) * early))
    return [
        Finding(
            CODE, NAME, Severity.WARNING,
            f"Gradient norm fades from {early:.3g} to {late:.1g} while the loss stays at {losses[-1]:.3g}",
            run.where(curve.finite.row(row), last_step=int(curve.step[-1])),
            (
                Measure("ratio", late / early, limit=fade),
                Measure("level_before", early),
                Measure("level_after", late),
                Measure("from_start", False),
            ),
        )
    ]  # fmt: skip
