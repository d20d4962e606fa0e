"""Finds a learning rate too low, or a warm-up too long, for the model to learn.

What it checks: whether the loss falls, but by little of its start and in proportion to the learning rate spent, so that
the second half of it still brings a third of the gain or more, while the gradient norm stays as large as at the start
and the parameters hardly move; or whether the loss of a fresh model does not move at all and neither do they. Runs that
learn make most of their gain early.

Why it matters: the model is where it was initialized; the run costs its full price for nothing.

What to do: raise the peak learning rate tenfold (or shorten the warm-up), and check that it reaches the optimizer's
parameter groups: updates of about a thousandth of the weights per step are usual.
"""

from __future__ import annotations

from math import log

import numpy as np

from gdiag.analyzers.learning_evidence import guessed
from gdiag.measures.lr_progress import Slow, slow_descent
from gdiag.measures.run import RunView
from gdiag.model import Finding, Measure, Severity

CODE = "GD304"
NAME = "lr-too-low"
NEEDS: tuple[str, ...] = ("steps.lr", "steps.loss")

STILL = 1e-3
"""Relative change of the parameter norms over a run below which the optimizer does next to nothing."""


def analyze(
    run: RunView,
    *,
    most_gain: float = 0.15,
    late_share: float = 0.3,
    drift: float = 0.05,
    untrained: float = 4.0,
    least_rows: int = 500,
    tiny: float = 5e-6,
    large: float = 0.1,
) -> list[Finding]:
    """At most one finding, for the whole run.

    most_gain: fall of the loss as a share of its start, above which the run learns. late_share: least share of it made in
    the second half of the learning rate spent. drift: most relative change of the parameter norms. untrained: loss [nat]
    from which a model counts as fresh where neither vocabulary nor token entropy says so, nor a loss of ln 10, 100 or 1,000
    that it guesses among as many classes. least_rows: rows from which a log that ends in its warm-up is judged. tiny: peak rate below which a loss that does not move at all, of a fresh model whose
    parameter norms are not logged, is put down to it. large: peak rate from which no optimizer's is called low.
    """
    schedule = run.schedule
    if (
        schedule is None
        or schedule.peak >= large
        or schedule.jumps
        or run.gradient_surge is not None
        or run.begins_trained
    ):
        return []
    lr, loss, grad = run.series("lr").finite, run.series("loss"), run.grad_norm
    seen = slow_descent(lr, loss, grad)
    if seen is None or len(loss.nonfinite) or _stops_early(run, int(loss.step[-1])):
        return []
    moved = _drift(run)
    still = moved is not None and moved < STILL
    if _crawls(seen, most_gain, late_share) and (moved is None or moved <= drift):
        words = f"falls by only {seen.gain:.3f} of {seen.start:.3f} nat over the run"
        part = f", {seen.late_share:.0%} of it in the second half of the learning rate spent"
    elif abs(seen.gain) <= 4 * seen.error and (still or (moved is None and schedule.peak < tiny)):
        words, part = f"stays at {seen.start:.3f} nat over the run", ""
        if not _fresh(run, seen, untrained):
            return []
    else:
        return []
    if seen.grad_ratio is not None and not 0.4 <= seen.grad_ratio <= 2.5:
        return []
    share = schedule.warmup_steps / max(1, schedule.last_step - schedule.first_step)
    # A short log that ends in the warm-up says nothing yet.
    if share > 0.8 and len(loss) < least_rows:
        return []
    severity = Severity.WARNING if _fresh(run, seen, untrained) else Severity.INFO
    evidence = [
        Measure("loss_gain", seen.gain, "nat", limit=most_gain * seen.start),
        Measure("level_before", seen.start, "nat"),
        Measure("level_after", seen.start - seen.gain, "nat"),
        Measure("late_gain_share", seen.late_share, limit=late_share),
        Measure("noise", seen.error, "nat"),
        Measure("lr_peak", schedule.peak),
        Measure("warmup_share", share),
    ]
    if seen.grad_ratio is not None:
        evidence.append(Measure("grad_ratio", seen.grad_ratio))
    if moved is not None:
        evidence.append(Measure("param_drift", moved, limit=drift))
    why = f"with a warm-up over {share:.0%} of it" if share > 0.3 else f"at a peak learning rate of {schedule.peak:.3g}"
    return [
        Finding(
            CODE, NAME, severity,
            f"The loss {words} {why}{part}",
            run.where(loss.finite.row(0), step=int(loss.step[0]), last_step=int(loss.step[-1])),
            tuple(evidence),
        )
    ]  # fmt: skip


def _stops_early(run: RunView, last: int) -> bool:
    """Whether the run goes on for longer without a logged loss than with one: its first steps say nothing of the rest."""
    steps = run.paths[0].frame["step"]
    return len(steps) > 0 and int(steps[-1]) > 2 * last


def _crawls(seen: Slow, most_gain: float, late_share: float) -> bool:
    """Whether the loss falls, by little, and as much late as early."""
    return 4 * seen.error < seen.gain < most_gain * seen.start and late_share <= seen.late_share <= 1 - late_share / 2


def _fresh(run: RunView, seen: Slow, untrained: float) -> bool:
    """Whether the loss says that the model has learned next to nothing at all."""
    end = seen.start - seen.gain
    entropy = run.series("token_entropy")
    if len(entropy) >= 20:
        return end > 1.1 * float(np.median(entropy.value))
    vocabulary = run.run.config.get("vocabulary", run.run.config.get("vocab_size"))
    if isinstance(vocabulary, int | float) and vocabulary > 1:
        return end > 0.75 * log(vocabulary)
    return end > untrained or guessed(run, within=0.01) is not None


def _drift(run: RunView) -> float | None:
    """Relative change of the parameter norm over the run, or its median over layers; None when not logged."""
    total = run.series("param_norm").value
    if len(total) >= 20:
        return abs(float(total[-1] / total[0]) - 1) if total[0] else None
    held = set(run.layers.columns)
    names = [c.column for c in run.layer_columns if c.quantity == "param_norm" and c.column in held]
    changes = []
    for name in names:
        values = run.layers[name].drop_nulls().to_numpy()
        if len(values) >= 20 and values[0] > 0:
            changes.append(abs(float(values[-1] / values[0]) - 1))
    return float(np.median(changes)) if changes else None
