"""The loss stops falling long before the run ends.

What it checks: the share of the run over which the loss stays within 1 % of its whole gain (or three standard errors) of
its final level. It is a warning where the learning rate was below a tenth of its peak over that stretch, or where a model
from scratch (first level 4 to 16 nats) stays flat over most of the run at more than 45 % of its first level, or any model at
what guessing among its classes costs or, while its weights grow by half, at more than 80 % of its first level. So it is where
a model from scratch stays flat at such a level for two fifths of the run before the loss falls on at last: none of 136 healthy
runs of networks really trained does, 17 of 189 faulty ones do. Where the token entropy of the batches rises over that stretch,
a loss that does not rise with it still falls: the data grew harder.

Why it matters: the steps of the plateau buy nothing. With a spent learning rate they could; at a high level the model has
learnt no more than how often each token occurs.

What to do: with a spent learning rate extend the schedule and resume from where it decayed; at a high level look for a
learning rate that is too high or too low, vanishing gradients, a bad initialisation, or labels that do not fit.
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from gdiag.analyzers.learning_evidence import flat_lr_share, guess_measures, guessed, learning_measures, weights_moved
from gdiag.measures.baseline import MEDIAN_ERROR, row_noise
from gdiag.measures.changes import Learning, change_per_fold, learning
from gdiag.measures.curves import Curve
from gdiag.measures.guesses import untrained
from gdiag.measures.run import RunView
from gdiag.measures.segments import interval
from gdiag.model import Finding, Measure, Severity
from gdiag.reference.figures import multiple

CODE = "GD108"
NAME = "loss-plateau"
NEEDS: tuple[str, ...] = ("steps.loss",)


def analyze(
    run: RunView, *, spent: float = 0.1, spent_flat: float = 0.35, flat: float = 0.6, level: float = 0.45,
    scratch: float = 4.0, steps: int = 300, no_learning: float = 0.95, stretch: float = 0.4,
) -> list[Finding]:  # fmt: skip
    """At most one finding.

    Thresholds:
        spent: share of the peak below which the learning rate is spent.
        spent_flat: flat share of the run from which a plateau with a spent learning rate is reported.
        flat: flat share of the run from which a plateau at a high level is reported.
        level: share of the first level above which a level is high.
        scratch: first level (nat) from which the run is taken to start from scratch.
        steps: fewest steps of the run.
        no_learning: share of the first level above which GD107 speaks instead.
        stretch: flat share of the run from which a plateau at a high level is reported though the loss falls on after it.
    """
    curve, found = run.series("loss"), _learning(run)
    if found is None or found.first <= 0 or curve.step[-1] - curve.step[0] < steps:
        return []
    first = _first(curve, found, scratch)
    if found.best >= no_learning * first or any(event.kind == "divergence" for event in run.losses[0].events):
        return []
    share = flat_lr_share(run, found)
    # A schedule that reaches zero at the end is low over its last third: idle is a rate that was low over all of it.
    most = flat_lr_share(run, found, 0.8)
    still = _truly_flat(found, first - found.end, _hardening(run, int(curve.step[found.flat_from])))
    idle = most is not None and most < ROUNDED * spent and found.flat_share >= spent_flat and still
    classes = guessed(run) if found.flat_share >= flat else None
    high = found.flat_share >= flat and (found.end > level * first or classes is not None) and still
    if not (idle or high):
        return _for_long(run, first, level, stretch) if untrained(first, scratch) else []
    if found.end >= first:
        return []
    start = max(found.flat_from, _spent_from(run, spent)) if idle else found.flat_from
    onset = int(curve.step[start])
    share_flat = (len(curve) - start) / len(curve)
    said = f"Loss stays at {found.end:.4g} nat from step {onset} to the end, {share_flat:.0%} of the run"
    if idle and share is not None:
        said += f", with the learning rate at {share:.2g} of its peak"
    if classes is not None:
        said += f", which is what guessing among {classes:,} classes costs"
    moved = weights_moved(run) if high and found.end > LEARNED_LITTLE * first else None
    if moved is not None:
        said += f", while the norm of the weights grows {multiple(moved)}-fold"
    sure = idle or untrained(first, scratch) or classes is not None or moved is not None
    where = run.where(curve.finite.row(start), last_step=int(curve.step[-1]))
    evidence = [*learning_measures(run, found, level * first), *guess_measures(run, classes)]
    evidence += [Measure("weights_moved", moved)] if moved is not None else []
    return [Finding(CODE, NAME, Severity.WARNING if sure else Severity.INFO, said, where, tuple(evidence))]


LEARNED_LITTLE = 0.8
"""Share of its first level at which a loss has learned so little that weights which grew by half moved in vain."""
ROUNDED = 0.98
"""A rate that is held at a tenth of its peak, as printed, is not below it."""


def _learning(run: RunView) -> Learning | None:
    """What the run gained, without the steps up of its loss: what it learns after one it learns from there on."""
    steps = [event for event in run.losses[0].events if event.kind == "step_up"]
    if not steps:
        return run.learning
    value = run.series("loss").value.copy()
    for event in steps:
        value[event.onset :] -= event.after_effect
    return learning(value)


ENDS = (0.8, 0.7, 0.6, 0.5)
"""Shares of the run after which a flat stretch is looked for that is not its end."""


def _for_long(run: RunView, first: float, level: float, stretch: float) -> list[Finding]:
    """The longest flat stretch at a high level that the loss leaves in the end."""
    curve = run.series("loss")
    for share in ENDS:
        until = int(share * len(curve))
        found = learning(curve.value[:until])
        if found is None or found.flat_share * share < stretch or not level * first < found.end < first:
            continue
        hardening = _hardening(run, int(curve.step[found.flat_from]))
        if not _truly_flat(found, first - found.end, hardening):
            continue
        begin, last = int(curve.step[found.flat_from]), int(curve.step[until - 1])
        said = f"Loss stays at {found.end:.4g} nat from step {begin} to {last}, {found.flat_share * share:.0%} of the run, and falls on only then"
        where = run.where(curve.finite.row(found.flat_from), last_step=last)
        evidence = [*learning_measures(run, found, level * first), Measure("falls_on", True)]
        rate = run.series("lr")
        if (then := rate.at(last)) is not None and float(rate.value.max()) > 0:
            evidence += [Measure("lr_share_then", then / float(rate.value.max()))]
            evidence += [Measure("lr_fall", float(rate.value[-1]) / then)] if then > 0 else []
        return [Finding(CODE, NAME, Severity.WARNING, said, where, tuple(evidence))]
    return []


def _first(curve: Curve, found: Learning, scratch: float) -> float:
    """Loss before the first update (nat): a model from scratch may fall to the level of the token frequencies within a few
    rows, and its first row, where it guesses, has next to no noise."""
    start = float(curve.value[0])
    fresh = untrained(start, scratch) and curve.step[0] <= interval(curve.step)
    return max(found.first, start) if fresh else max(found.first, float(np.median(curve.value[:3])))


def _spent_from(run: RunView, spent: float) -> int:
    """Row of the loss from which the learning rate stays below `spent` of its peak: before it, the rate stopped nothing."""
    loss, rate = run.series("loss"), run.series("lr")
    above = np.flatnonzero(rate.value > spent * float(rate.value.max()))
    if not len(above) or above[-1] + 1 >= len(rate):
        return 0
    return min(len(loss) - 1, int(np.searchsorted(loss.step, rate.step[above[-1] + 1])))


def _truly_flat(found: Learning, gain: float, hardening: float) -> bool:
    """Whether the flat part falls by less than a fiftieth of the whole gain per e-fold of steps, for equally hard data."""
    return found.slope - hardening > -0.02 * gain


def _hardening(run: RunView, start: int) -> float:
    """Rise of the batches' token entropy per e-fold of rows from step `start` on (nat).

    0 where it is not logged or falls, or rises by less than three standard errors of the thirds it is taken from.
    """
    entropy = run.series("token_entropy")
    at = int(np.searchsorted(entropy.step, start))
    held = entropy.value[at:]
    if len(held) < 60:
        return 0.0
    third = len(held) // 3
    error = MEDIAN_ERROR * row_noise(held) * sqrt(2 / third)
    if float(np.median(held[-third:]) - np.median(held[:third])) <= 3 * error:
        return 0.0
    return change_per_fold(held, np.arange(at, len(entropy), dtype=np.float64))
