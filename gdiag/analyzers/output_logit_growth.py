"""Finds output logits that drift away.

What it checks: the output logits (largest logit or mean log Z, whichever is logged): above `level`, `factor` times
their earlier level and there to the end, rising steadily.

Why it matters: without z-loss or weight decay on the head the logits may drift, because the softmax does not see a common
shift; it shows late in training, and in fp16 or bf16 it ends in lost precision and spikes.

What to do: z-loss of 1e-4, weight decay on the head, output softmax and cross-entropy in FP32.
"""

from __future__ import annotations

import numpy as np

from gdiag.measures.growth import sustained_growth
from gdiag.measures.run import RunView
from gdiag.model import Finding, Measure, Severity

CODE = "GD211"
NAME = "output-logit-growth"
NEEDS: tuple[str, ...] = ("steps.output_logit",)


def analyze(run: RunView, *, level: float = 50.0, factor: float = 3.0, z: float = 4.0) -> list[Finding]:
    """At most one finding.

    Args:
        run: the run.
        level: size of the logit.
        factor: growth over the earlier level.
        z: Mann-Kendall score of the rise.
    """
    curve = run.series("output_logit")
    found = sustained_growth(np.abs(curve.value), level, factor)
    if found is None or found.z < z:
        return []
    step = int(curve.step[found.row])
    return [
        Finding(
            CODE, NAME, Severity.WARNING,
            f"Output logit grows from {found.start:.3g}{f' past {level:g}' if found.start < level else ''} at step {step} to {found.last:.3g}",
            run.where(curve.finite.row(found.row), last_step=int(curve.step[-1]), layer=_head(run)),
            (
                Measure("level_before", found.start), Measure("level_after", found.last, limit=level),
                Measure("ratio", found.factor, limit=factor), Measure("z", found.z, limit=z),
                Measure("layer_kind", "lm_head"),
            ),
        )
    ]  # fmt: skip


def _head(run: RunView) -> str | None:
    """The output head, where the layers are logged and one is known as such."""
    return next((c.layer for c in run.layer_columns if c.kind == "lm_head"), None)
