"""Finds validation loss that leaves its level while training does not move.

What it checks: evaluations that stand eight standard deviations and a tenth above the three before, come back later or stay
at their new level, and a training loss that shows nothing of it over the same steps.

Why it matters: a model that was harmed shows in both. What shows in validation alone lies in the validation data, their
preprocessing or the code that evaluates; early stopping and the choice of the best checkpoint are misled by it.

What to do: evaluate the checkpoint before it again on the data of then; look for another validation set, a changed
tokenizer or preprocessing, dropout left on, or weights that evaluation loads from elsewhere.
"""

from __future__ import annotations

from gdiag.measures.evaluation import JUMP, eval_jumps
from gdiag.measures.run import RunView
from gdiag.model import Finding, Measure, Severity

CODE = "GD119"
NAME = "eval-jump"
NEEDS: tuple[str, ...] = ("steps.loss", "steps.eval_loss")


def analyze(run: RunView, *, z: float = JUMP) -> list[Finding]:
    """At most one finding, for the first place. z: standard deviations of one evaluation that the height must reach."""
    seen = eval_jumps(run.series("loss"), run.series("eval_loss"), z=z)
    if not seen:
        return []
    first = seen[0]
    points = run.series("eval_loss").finite
    brief = "alone" if first.last_step == first.step else f"until step {first.last_step}"
    end = brief if first.returned else "to the end"
    more = f", the first of {len(seen)} such places" if len(seen) > 1 else ""
    return [
        Finding(
            CODE, NAME, Severity.WARNING,
            f"Validation loss rises from {first.level:.4g} to {first.level + first.height:.4g} nat at step {first.step} {end} while training loss changes by {first.train_change:+.2g} nat{more}",
            run.where(points.row(int((points.step < first.step).sum())), step=first.step, last_step=first.last_step),
            (
                Measure("eval_rise", first.height, "nat", limit=z * first.noise),
                Measure("level_before", first.level, "nat"),
                Measure("evals", first.evals),
                Measure("recovered", first.returned),
                Measure("train_change", first.train_change, "nat"),
                Measure("places", len(seen)),
                Measure("noise", first.noise, "nat"),
            ),
        )
    ]  # fmt: skip
