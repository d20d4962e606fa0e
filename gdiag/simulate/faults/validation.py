"""Faults that show in the evaluations, or that the logger hides."""

from __future__ import annotations

from typing import Final

import numpy as np

from gdiag.simulate.faults.fault import Fault, needs
from gdiag.simulate.forces import Forces
from gdiag.simulate.truth import Event


def _overfitting(forces: Forces) -> list[Event]:
    at = forces.pick(0.3, 0.5)
    done = np.clip((np.arange(forces.n) - at) / (forces.n - at), 0.0, None)
    forces.shift -= 0.25 * done
    level = forces.level()
    forces.eval_shift += np.where(done > 0, level[at] - level, 0.0) + forces.size(0.3, 1.2) * done - forces.shift
    return [Event("overfitting", ("overfitting",), ("eval_divergence",), forces.seen(at), slow=True)]


def _eval_nan(forces: Forces) -> list[Event]:
    at = forces.pick(0.3, 0.7)
    forces.eval_nan[at:] = True
    first = next((i for i in range(at, forces.n) if i % max(forces.setup.every, forces.setup.steps // 30) == 0), at)
    causes = ("numeric_overflow", "software_fault", "unknown")
    return [Event("eval_nan", causes, ("nonfinite", "eval_divergence"), forces.seen(first), slow=True)]


def _hidden(forces: Forces) -> list[Event]:
    at = forces.pick(0.3, 0.9)
    forces.hide_nan = True
    forces.nan_loss[at:], forces.nan_grad[at:] = True, True
    causes = ("numeric_overflow", "gradient_explosion", "unknown")
    return [Event("hidden_nan", causes, ("nonfinite",), forces.seen(at), tolerates_more=True)]


FAULTS: Final = (
    Fault("overfitting", "training improves, validation gets worse", _overfitting, needs("eval"), sudden=False),
    Fault("eval-nan", "validation is NaN, training is not", _eval_nan, needs("eval"), sudden=False),
    Fault("hidden-nan", "NaN that the logger writes as a loss of 0", _hidden, needs("grad"), sudden=False),
)  # fmt: skip
