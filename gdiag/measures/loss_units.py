"""Units of the loss: sums in place of means, factors of accumulation or world size, perplexities, bits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import e, log, sqrt
from typing import Literal

import numpy as np

from gdiag.measures.baseline import MEDIAN_ERROR, row_noise
from gdiag.measures.curves import Curve, Floats

SIDE = 60
"""Rows looked at on either side of a boundary."""
LEAST_ROWS = 20
MOST_FACTOR = 1024
EXPLODED = 3.0
"""Growth of the gradient norm over the factor of the loss from which no factor of the code explains it."""
MOST_DOUBT = 0.08
"""Relative standard error of the ratio of two levels from which its nearness to an integer says nothing."""


@dataclass(frozen=True, slots=True)
class Factor:
    """A loss that is an integer multiple of what it was, noise included."""

    step: int
    index: int
    factor: int
    up: bool
    """Multiplied rather than divided."""
    ratio: float
    noise_ratio: float
    before: float
    after: float


def factors(
    loss: Curve, boundaries: Sequence[int], grad: Curve | None = None, *, tolerance: float = 0.03
) -> list[Factor]:
    """Boundaries at which level and noise of the loss are both multiplied, or divided, by one integer.

    A diverging model changes its level alone and goes on moving; a factor in the code changes both at once and stays. It
    multiplies the gradient norm by itself or not at all: norms that grow by far more are those of a model that diverges.
    """
    found: list[Factor] = []
    for step in sorted(set(boundaries)):
        i = int(np.searchsorted(loss.step, step))
        before, after = loss.value[max(0, i - SIDE) : i], loss.value[i : i + SIDE]
        if len(before) < LEAST_ROWS or len(after) < LEAST_ROWS or np.median(before) <= 0 or np.median(after) <= 0:
            continue
        edge = min(len(before), len(after), 20)
        ratio = float(np.median(after[:edge]) / np.median(before[-edge:]))
        if not 0 < ratio < np.inf or ratio < 1 / np.finfo(float).max:
            continue
        if _doubt(before[-edge:], after[:edge]) > MOST_DOUBT:
            continue
        up = ratio > 1
        factor = round(ratio if up else 1 / ratio)
        off = abs((ratio if up else 1 / ratio) / max(factor, 1) - 1)
        # Above 16 every ratio is near an integer: only multiples of 8, as world sizes and accumulations are, count.
        if not 2 <= factor <= MOST_FACTOR or (factor > 16 and factor % 8) or off > tolerance:
            continue
        first, second = after[: len(after) // 2], after[len(after) // 2 :]
        settled = abs(float(np.median(second) / np.median(first)) - 1) < 0.08
        # The end of a spike is a fall by some factor as well, but one that the sides as a whole do not show.
        settled &= abs(float(np.median(after) / np.median(before)) / ratio - 1) < 0.25
        spread = row_noise(after) / max(row_noise(before), 1e-12)
        scaled = spread if up else 1 / max(spread, 1e-12)
        wild = up and grad is not None and _grown(grad, step) > EXPLODED * factor
        if settled and not wild and 0.6 * factor < scaled < 1.6 * factor:
            found.append(
                Factor(
                    int(loss.step[i]), i, factor, up, ratio, spread, float(np.median(before)), float(np.median(after))
                )
            )
    return found


def _grown(grad: Curve, step: int) -> float:
    """Median gradient norm of the rows from `step` on over that of the rows before; 1 where too few are logged."""
    i = int(np.searchsorted(grad.step, step))
    before, after = grad.value[max(0, i - SIDE) : i], grad.value[i : i + SIDE]
    known = len(before) >= LEAST_ROWS and len(after) >= LEAST_ROWS and np.median(before) > 0
    return float(np.median(after) / np.median(before)) if known else 1.0


def _doubt(before: Floats, after: Floats) -> float:
    """Relative standard error of the ratio of two medians, by the noise of either side."""
    shares = [row_noise(side) / float(np.median(side)) for side in (before, after)]
    return MEDIAN_ERROR * sqrt(sum(share * share for share in shares) / len(before))


@dataclass(frozen=True, slots=True)
class EvalUnit:
    """A validation loss in another unit than the training loss."""

    unit: Literal["perplexity", "bits"]
    evals: int
    ratio: float
    """Median of the logged figure over the training loss in that unit."""


def eval_unit(loss: Curve, evaluation: Curve) -> EvalUnit | None:
    """Whether validation is a perplexity, or bits, where training is in nats; None with fewer than five evaluations."""
    if len(evaluation) < 5 or len(loss) < 20:
        return None
    rows = np.searchsorted(loss.step, evaluation.step, side="right")
    train = np.array([np.median(loss.value[max(0, r - 10) : max(1, r)]) for r in rows])
    kept = (train > 0.5) & (train < 20) & (evaluation.value > 0)
    if kept.sum() < 5:
        return None
    train, seen = train[kept], evaluation.value[kept]
    gap = np.log(seen) - train
    # A perplexity follows exp(loss) over the whole range, not at one point only.
    if np.abs(gap).max() < 0.35 and np.median(seen / train) > 2:
        return EvalUnit("perplexity", int(kept.sum()), float(e ** np.median(gap)))
    bits = seen / (train / log(2))
    if np.ptp(bits) < 0.02 * sqrt(len(bits)) and abs(float(np.median(bits)) - 1) < 0.01:
        return EvalUnit("bits", int(kept.sum()), float(np.median(bits)))
    return None
