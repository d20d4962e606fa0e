"""The loss hardly falls at all.

What it checks: the lowest block of the run lies above 95 % of the loss's first level, after 300 steps or more. Only a
first level of 4 to 16 nats, as a model from scratch has it (ln of the vocabulary), or a later half at what guessing among
10, 100 or 1,000 classes costs (of no language model, in a log from its start on) makes a warning: a fine-tuned or resumed
model may rightly stay where it is.

Why it matters: the run learns nothing, and every step is wasted.

What to do: look for a learning rate of zero or far too low, parameters that are not in the optimizer (their norm is
constant), a label shift or mask bug, a bad initialisation, frozen weights.
"""

from __future__ import annotations

from gdiag.analyzers.learning_evidence import guess_measures, guessed, learning_measures
from gdiag.measures.guesses import classes_guessed, untrained
from gdiag.measures.run import RunView
from gdiag.model import Finding, Measure, Severity

CODE = "GD107"
NAME = "no-learning"
NEEDS: tuple[str, ...] = ("steps.loss",)


def analyze(run: RunView, *, share: float = 0.95, steps: int = 300, scratch: float = 4.0) -> list[Finding]:
    """At most one finding.

    Thresholds:
        share: share of the first level that the lowest block stays above.
        steps: fewest steps of the run.
        scratch: first level (nat) from which the run is taken to start from scratch.
    """
    curve, found = run.series("loss"), run.learning
    if found is None or found.first <= 0 or run.begins_trained or curve.step[-1] - curve.step[0] < steps:
        return []
    if found.best < share * found.first or any(event.kind == "divergence" for event in run.losses[0].events):
        return []
    said = f"Loss is {found.end:.4g} nat after {int(curve.step[-1] - curve.step[0])} steps and began at {found.first:.4g} nat"
    # Classes that are not equally frequent cost a little less; both ends of the run must tell of the same number then.
    classes, near = guessed(run), guessed(run, within=0.02)
    if classes is None and near == classes_guessed(found.first, within=0.02):
        classes = near
    if classes is not None:
        said += f", which is what guessing among {classes:,} classes costs"
    severity = Severity.WARNING if untrained(found.first, scratch) or classes is not None else Severity.INFO
    where = run.where(curve.finite.row(0), last_step=int(curve.step[-1]))
    evidence = learning_measures(run, found, share * found.first)
    return [Finding(CODE, NAME, severity, said, where, (*evidence, *_peak(run), *guess_measures(run, classes)))]


def _peak(run: RunView) -> tuple[Measure, ...]:
    rate = run.series("lr")
    return (Measure("lr_peak", float(rate.value.max())),) if len(rate) else ()
