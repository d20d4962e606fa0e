"""The loss hardly falls at all.

What it checks: the lowest block of the run lies above 95 % of the loss's first level, after 300 steps or more. Only a
first level of 4 to 16 nats, as a model from scratch has it (ln of the vocabulary), or a later half at what guessing among
10, 100 or 1,000 classes costs (of no language model, in a log from its start on), or weights that grow by half meanwhile, or
a rate below all that is used, makes a warning: a fine-tuned or resumed model may rightly stay where it is.

Why it matters: the run learns nothing, and every step is wasted.

What to do: look for a learning rate of zero or far too low, parameters that are not in the optimizer (their norm is
constant), a label shift or mask bug, a bad initialisation, frozen weights.
"""

from __future__ import annotations

from gdiag.analyzers.learning_evidence import guess_measures, guessed, learning_measures, weights_moved
from gdiag.measures.guesses import classes_guessed, untrained
from gdiag.measures.run import RunView
from gdiag.model import Finding, Measure, Severity
from gdiag.reference.figures import multiple

CODE = "GD107"
NAME = "no-learning"
NEEDS: tuple[str, ...] = ("steps.loss",)


def analyze(
    run: RunView, *, share: float = 0.95, steps: int = 300, scratch: float = 4.0, least_rate: float = 1e-6,
    least_level: float = 1.0,
) -> list[Finding]:  # fmt: skip
    """At most one finding.

    Thresholds:
        share: share of the first level that the lowest block stays above.
        steps: fewest steps of the run.
        scratch: first level (nat) from which the run is taken to start from scratch.
        least_rate: peak learning rate below which no optimizer learns a loss above `least_level` (nat): Adam and its kin take
            1e-6 and more, and only losses of preferences or policies, which start lower, less.
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
    moved = weights_moved(run)
    if moved is not None:
        said += f", while the norm of the weights grew {multiple(moved)}-fold"
    rate = run.series("lr").value
    peak = float(rate.max()) if len(rate) else None
    idle = peak is not None and peak < least_rate and found.first > least_level
    sure = untrained(found.first, scratch) or classes is not None or moved is not None or idle
    where = run.where(curve.finite.row(0), last_step=int(curve.step[-1]))
    evidence = [*learning_measures(run, found, share * found.first), *guess_measures(run, classes)]
    evidence += [Measure("lr_peak", peak)] if peak is not None else []
    evidence += [Measure("weights_moved", moved)] if moved is not None else []
    return [Finding(CODE, NAME, Severity.WARNING if sure else Severity.INFO, said, where, tuple(evidence))]
