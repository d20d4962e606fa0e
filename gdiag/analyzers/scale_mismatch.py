"""Finds losses that change their unit: sums for means, factors of accumulation or world size, perplexities for nats.

What it checks: restarts, changes of batch size and jumps of the loss at which level and noise are both multiplied, or
divided, by the same integer and stay there; a first loss that is an integer multiple of ln(vocabulary); validation
figures that follow exp(loss) or loss/ln 2.

Why it matters: nothing happened to the model, but every comparison across the boundary is wrong, and where the factor
is in the loss that is differentiated, the gradient and the effective learning rate changed with it.

What to do: log the mean over tokens, reduced over ranks and accumulation steps; check versions of the trainer (HF
Trainer 4.46–4.47 logged the sum over accumulation steps).
"""

from __future__ import annotations

from math import log

import numpy as np

from gdiag.measures.loss_units import EvalUnit, Factor
from gdiag.measures.run import RunView
from gdiag.model import Finding, Measure, Severity

CODE = "GD113"
NAME = "scale-mismatch"
NEEDS: tuple[str, ...] = ("steps.loss",)


def analyze(run: RunView, *, tolerance: float = 0.03) -> list[Finding]:
    """A finding per boundary, one for the first loss, one for the validation's unit.

    tolerance: relative distance of a ratio from its integer.
    """
    found = [_factor(run, f) for f in run.loss_factors if abs(_off(f)) <= tolerance]
    first = _first_loss(run, tolerance)
    unit = run.eval_unit
    return [*([first] if first else []), *found, *([_unit(run, unit)] if unit else [])]


def _off(seen: Factor) -> float:
    return (seen.ratio if seen.up else 1 / seen.ratio) / seen.factor - 1


def _factor(run: RunView, seen: Factor) -> Finding:
    times = f"{seen.factor} times" if seen.up else f"1/{seen.factor} of"
    return Finding(
        CODE, NAME, Severity.WARNING,
        f"From step {seen.step} on the loss is {times} what it was ({seen.before:.3f} to {seen.after:.3f}), and so is its noise",
        run.where(run.series("loss").finite.row(seen.index), step=seen.step),
        (
            Measure("ratio", seen.ratio, limit=float(seen.factor)),
            Measure("factor", seen.factor),
            Measure("noise_ratio", seen.noise_ratio),
            Measure("level_before", seen.before, "nat"),
            Measure("level_after", seen.after, "nat"),
        ),
    )  # fmt: skip


def _first_loss(run: RunView, tolerance: float) -> Finding | None:
    vocabulary = run.run.config.get("vocabulary", run.run.config.get("vocab_size"))
    loss = run.series("loss")
    if not isinstance(vocabulary, int | float) or vocabulary < 100 or len(loss) < 3 or loss.step[0] > 10:
        return None
    ratio = float(np.median(loss.value[:3])) / log(vocabulary)
    # Accumulation steps are powers of two; other integers would meet a wrong model's first loss by chance.
    if not 1 < ratio < 100 or round(ratio) not in (2, 4, 8, 16, 32, 64) or abs(ratio / round(ratio) - 1) > tolerance:
        return None
    return Finding(
        CODE, NAME, Severity.INFO,
        f"The first loss is {round(ratio)} times ln(vocabulary) = {log(vocabulary):.2f} nat: a sum in place of a mean",
        run.where(loss.finite.row(0)), (Measure("ratio", ratio, limit=float(round(ratio))), Measure("factor", round(ratio))),
    )  # fmt: skip


def _unit(run: RunView, seen: EvalUnit) -> Finding:
    what = "a perplexity, exp of a loss" if seen.unit == "perplexity" else "in bits"
    return Finding(
        CODE, NAME, Severity.INFO, f"The validation figure is {what}, while the training loss is in nats",
        run.where(run.series("eval_loss").finite.row(0)),
        (Measure("unit", seen.unit), Measure("evaluations", seen.evals), Measure("ratio", seen.ratio, limit=1.0)),
    )  # fmt: skip
