"""Notes loss events that follow a long stretch of small gradients.

What it checks: at the onset of every loss event, whether the gradient norm had been quiet for a good part of the memory
of Adam's second moment and then jumps, and by how much it outgrows the moment that norms alone give; the measured
moment of each layer where it is logged. Where the configuration names no beta2, 0.999 is assumed and said.

Why it matters: a moment that has forgotten what gradients are like makes the first large one a step many times too
large. It is a hypothesis: BLOOM-104B lowered beta2 without any effect, and norms of whole tensors hide what elements do.

What to do: beta2 0.95 to 0.98, update clipping (StableAdamW), a lower learning rate; log the second moments
(`exp_avg_sq`) and update norms per layer to decide.
"""

from __future__ import annotations

import numpy as np

from gdiag.measures.run import RunView
from gdiag.measures.second_moment import lead_rows, stale_moment
from gdiag.measures.segments import interval
from gdiag.model import Finding, Measure, Severity

CODE = "GD214"
NAME = "stale-second-moment"
NEEDS: tuple[str, ...] = ("steps.loss", "steps.grad_norm|layers.grad_norm")

DEFAULT = 0.999
"""PyTorch's and TensorFlow's default of beta2."""
_LEADS = 4
"""So many times the rows before an onset in which a moment is outgrown show how a layer's gradients usually lie to it."""


def analyze(
    run: RunView, *, jump: float = 5.0, rms: float = 1.0, element: float = 2.3, most: int = 10
) -> list[Finding]:
    """A finding, info, per loss event. jump: gradient norm at the onset over the quiet level.

    rms: over the root of the moment that norms of the whole network give, which understates the worst tensor's. element:
    the same of a layer with its logged moment, 2.3 in arXiv:2304.13013.

    most: events looked at.
    """
    said = run.run.config.get("beta2")
    known = isinstance(said, int | float) and not isinstance(said, bool) and 0 < said < 1
    beta2 = float(said) if known and isinstance(said, int | float) else DEFAULT
    found = []
    for event in run.losses[0].events[:most]:
        seen = stale_moment(run.grad_norm, event.onset_step, beta2)
        if seen is None or seen.jump < jump or seen.rms < rms:
            continue
        measured = _measured(run, event.onset_step)
        logged = f", and {measured[0]} outgrows its logged moment {measured[1]:.1f}-fold" if measured else ""
        evidence = [
            Measure("quiet_ratio", seen.quiet, limit=0.67),
            Measure("quiet_rows", seen.rows),
            Measure("jump", seen.jump, limit=jump),
            Measure("moment_rms", seen.rms, limit=rms),
            Measure("beta2", beta2),
            Measure("beta2_known", known),
        ]
        if measured:
            evidence.append(Measure("measured_rms", measured[1], limit=element))
        found.append(
            Finding(
                CODE, NAME, Severity.INFO,
                f"Gradients are {seen.quiet:.2f} of their usual size from step {seen.since} on and {seen.jump:.1f} times that at step "
                f"{event.onset_step}, while a second moment with beta2 {beta2:g}{'' if known else ' (assumed)'} remembers the small ones{logged}",
                run.where(step=event.onset_step), tuple(evidence),
            )
        )  # fmt: skip
    return found


def _measured(run: RunView, onset: int) -> tuple[str, float] | None:
    """Layer whose gradient norm most outgrows the norm of its logged second moment before the onset, in steady units.

    Logged moments are norms of v or of its root; the ratio to the gradient is held against its own median.
    """
    grads, moments = run.layer_table("grad_norm"), run.layer_table("second_moment")
    if grads is None or moments is None:
        return None
    place = {c.layer: i for i, c in enumerate(moments.columns)}
    common, mine, theirs = np.intersect1d(grads.step, moments.step, return_indices=True)
    until = int(np.searchsorted(common, onset, side="right"))
    lead = lead_rows(interval(common))
    best: tuple[str, float] | None = None
    for i, column in enumerate(grads.columns):
        if column.layer not in place or until < _LEADS * lead:
            continue
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = grads.values(i)[mine][:until] / np.sqrt(moments.values(place[column.layer])[theirs][:until])
        usual, here = float(np.nanmedian(ratio)), ratio[-lead:]
        high = float(np.nanmax(here)) / usual if usual > 0 and np.isfinite(here).any() else 0.0
        if np.isfinite(high) and (best is None or high > best[1]):
            best = (column.layer, high)
    return best
