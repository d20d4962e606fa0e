"""Finds runs that become unstable as the learning rate reaches its peak.

What it checks: from the first step to as long after the warm-up as the warm-up took, whether the smoothed loss rises
above its best and stays there, whether gradient norms leave their usual range a hundredfold, and whether the run ends
in NaN after that; gradients that grow manyfold in the first steps while the loss stays where it began; runs that learned
all they ever learn before the peak, after a violent step there; weights whose norm grows by percents a step, so that the
updates are as large; gradients that wander near the peak and calm when the rate falls.

Why it matters: this is what a learning rate beyond the edge of stability looks like; such runs end in NaN, diverge, or
sit at the level of the token frequencies for the rest of their budget.

What to do: halve the peak learning rate or lengthen the warm-up, clip gradients, lower beta2 to 0.95; QK-norm when
attention logits grow first.
"""

from __future__ import annotations

import numpy as np

from gdiag.measures.carried_off import PACE, CarriedOff
from gdiag.measures.gradient_level import Calming, Surge
from gdiag.measures.peak_stability import WILD, Instability, Stalled
from gdiag.measures.run import RunView
from gdiag.model import Finding, Measure, Severity
from gdiag.reference.figures import multiple

CODE = "GD307"
NAME = "unstable-at-peak-lr"
NEEDS: tuple[str, ...] = ("steps.lr", "steps.loss")


def analyze(run: RunView, *, lasting: float = 0.3, least_share: float = 0.1) -> list[Finding]:
    """At most one finding.

    lasting: share of the later rows above the best earlier level from which the run counts as harmed. least_share: least
    learning rate at the onset over the peak.
    """
    seen = run.peak_instability
    if seen is not None and seen.lr_share >= least_share:
        harmed = seen.ends_nonfinite or not seen.recovered
        if harmed or seen.lasts(lasting):
            return [_unstable(run, seen, Severity.CRITICAL if harmed else Severity.WARNING, lasting)]
    if run.gradient_surge is not None:
        return [_surge(run, run.gradient_surge)]
    stalled = run.peak_stall
    if stalled is not None and stalled.violent:
        return [_stalled(run, stalled)]
    if run.carried_off is not None:
        return [_carried_off(run, run.carried_off)]
    return [_calming(run, run.gradient_calming)] if run.gradient_calming is not None else []


def _surge(run: RunView, seen: Surge) -> Finding:
    end = f"until step {seen.last_step}" if seen.recovered else "to the end"
    return Finding(
        CODE, NAME, Severity.WARNING if seen.recovered else Severity.CRITICAL,
        f"Gradient norms grow {seen.grad_ratio:.0f}-fold in the first steps while the learning rate reaches {seen.lr_share:.0%} of its peak, and the loss stays where it began {end}",
        run.where(step=seen.step, last_step=seen.last_step),
        (
            Measure("kind", "surge"),
            Measure("lr_share_of_peak", seen.lr_share),
            Measure("grad_ratio", seen.grad_ratio, limit=5.0),
            Measure("loss_share", seen.loss_share, limit=0.95),
            Measure("recovered", seen.recovered),
        ),
    )  # fmt: skip


def _carried_off(run: RunView, seen: CarriedOff) -> Finding:
    return Finding(
        CODE, NAME, Severity.WARNING,
        f"The norm of the weights grows {multiple(seen.growth)}-fold from step {seen.step} to {seen.last_step} with the learning rate at {seen.lr_share:.0%} of its peak: the updates are {seen.pace:.0%} of the weights a step or more, where a thousandth is usual",
        run.where(step=seen.step, last_step=seen.last_step),
        (
            Measure("kind", "weights"),
            Measure("lr_share_of_peak", seen.lr_share),
            Measure("growth", seen.growth),
            Measure("pace", seen.pace, "1/step", limit=PACE),
        ),
    )  # fmt: skip


def _calming(run: RunView, seen: Calming) -> Finding:
    return Finding(
        CODE, NAME, Severity.WARNING,
        f"Gradient norms wander {np.exp(seen.spread_high):.1f}-fold near the peak learning rate, {np.exp(seen.spread_low):.1f}-fold once it has fallen, at {seen.level_ratio:.1f} times the level",
        run.where(step=seen.step, last_step=seen.last_step),
        (
            Measure("kind", "calming"),
            Measure("lr_share_of_peak", 1.0),
            Measure("level_ratio", seen.level_ratio, limit=2.0),
            Measure("spread_high", seen.spread_high, limit=1.3),
            Measure("spread_low", seen.spread_low),
        ),
    )  # fmt: skip


def _unstable(run: RunView, seen: Instability, severity: Severity, lasting: float) -> Finding:
    what = {"loss": "The loss rises", "gradient": "Gradient norms leave their range"}[seen.kind]
    if seen.ends_nonfinite:
        end = f"the run ends non-finite from step {seen.last_step} on"
    elif not seen.recovered:
        end = f"the loss does not come back ({seen.worse_share:.0%} of the later rows are above its best before)"
    else:
        end = f"the loss comes back later ({seen.worse_share:.0%} of the later rows are above its best before)"
    evidence = [
        Measure("kind", seen.kind),
        Measure("lr_share_of_peak", seen.lr_share),
        Measure("worse_share", seen.worse_share, limit=lasting),
        Measure("excess", seen.excess, "nat", limit=seen.margin),
        Measure("wild_rows", seen.wild_rows),
        Measure("ends_nonfinite", seen.ends_nonfinite),
        Measure("recovered", seen.recovered),
    ]
    if seen.grad_ratio is not None:
        evidence.append(Measure("grad_ratio", seen.grad_ratio, limit=WILD))
    return Finding(
        CODE, NAME, severity,
        f"{what} at step {seen.step} with the learning rate at {seen.lr_share:.0%} of its peak, and {end}",
        run.where(step=seen.step, last_step=seen.last_step), tuple(evidence),
    )  # fmt: skip


def _stalled(run: RunView, seen: Stalled) -> Finding:
    step = seen.violent_step if seen.violent_step is not None else seen.step
    evidence = [
        Measure("kind", "stalled"),
        Measure("lr_share_of_peak", seen.lr_share),
        Measure("loss_gain", seen.gain_after, "nat", limit=0.05 * seen.gain),
        Measure("total_gain", seen.gain, "nat"),
    ]
    if seen.grad_ratio is not None:
        evidence.append(Measure("grad_ratio", seen.grad_ratio, limit=WILD))
    return Finding(
        CODE, NAME, Severity.WARNING,
        f"The loss stops falling at {seen.lr_share:.0%} of the peak learning rate after a violent step at {step} and gains {max(0.0, seen.gain_after):.3f} of {seen.gain:.3f} nat after the warm-up",
        run.where(step=step, last_step=seen.last_step), tuple(evidence),
    )  # fmt: skip
