"""Whether training goes on as before at a loss that moved to another level: its noise, its descent, its gradients.

What the model is trained on, or the weights themselves, may change from one step to the next, and training goes on from
there with the same noise and the same gradients. A rate beyond the edge of stability does not: in trained networks whose
rate was raised in mid-run the gradient norm becomes two to four times rougher from row to row while its level falls, and
those that diverge by themselves have tens of times the noise in the loss. A log of every tenth step and more shows either
as a leap, so that the leap alone says little there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gdiag.measures.baseline import mad_sigma, row_noise
from gdiag.measures.curves import Curve

ROWS = 100
"""Rows on each side that are held against each other."""
LEAST_ROWS = 8
LEAST_ROUGH = 20
"""Fewest rows on each side for the roughness of gradient norms, whose standard error is then a third."""
SETTLED = 3
"""Rows from the onset on that may belong to the move itself."""


@dataclass(frozen=True, slots=True)
class Continuation:
    """Rows after a move over those before it; None where too few are logged."""

    noise_ratio: float
    """Noise of the loss from row to row."""
    kept: float
    """Excess over the old level at the end, over that right after the move: above 1 the loss still rises."""
    grad_level: float | None
    """Median gradient norm."""
    grad_roughness: float | None
    """Typical change of the gradient norm from row to row in log units."""


def continuation(loss: Curve, grad: Curve, onset: int, level: float) -> Continuation | None:
    """How the rows after a move of the loss that begins at row `onset`, from `level` on, compare with those before."""
    before, after = loss.value[max(0, onset - ROWS) : onset], loss.value[onset + SETTLED :]
    if len(before) < LEAST_ROWS or len(after) < LEAST_ROWS:
        return None
    noise = row_noise(before)
    part = max(LEAST_ROWS // 2, len(after) // 4)
    early, late = float(np.median(after[:part])) - level, float(np.median(after[-part:])) - level
    if noise <= 0 or early <= 0:
        return None
    ratio, roughness = _gradients(grad, int(loss.step[onset]))
    return Continuation(row_noise(after[:ROWS]) / noise, late / early, ratio, roughness)


def _gradients(grad: Curve, step: int) -> tuple[float | None, float | None]:
    """Level and roughness of the gradient norm after the move over those before."""
    positive = grad.finite.keep(grad.value > 0)
    i = int(np.searchsorted(positive.step, step))
    before, after = positive.value[max(0, i - ROWS) : i], positive.value[i + SETTLED : i + SETTLED + ROWS]
    if len(before) < LEAST_ROWS or len(after) < LEAST_ROWS:
        return None, None
    level = float(np.median(after) / np.median(before))
    if min(len(before), len(after)) < LEAST_ROUGH:
        return level, None
    rough = mad_sigma(np.diff(np.log(before)))
    return level, mad_sigma(np.diff(np.log(after))) / rough if rough > 0 else None
