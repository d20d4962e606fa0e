"""Runs in which a raised level is no fault: two adversaries, a sum of terms with changing weights, a range test."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from gdiag.measures.baseline import Floats
from gdiag.measures.run import RunView
from gdiag.model import Finding, Severity

OF_LOSS: Final = frozenset({"GD104", "GD105", "GD107", "GD108", "GD119", "GD305", "GD307"})
"""Checks that hold a level of the loss against its own past; GD307 does so beside that of the gradients."""

LEVELS: Final = OF_LOSS | {"GD103", "GD201", "GD213"}
"""Those, and checks of what two adversaries do to each other: spikes that come back, levels of the gradients."""


BROKEN: Final = LEVELS | {"GD101", "GD102", "GD109", "GD202", "GD204", "GD206", "GD302", "GD304"}
"""Those, and what else a learning rate does that is raised until training breaks."""


SURROGATE: Final = frozenset({"GD107", "GD108", "GD201", "GD213"})
"""Checks that take the loss for a measure of progress, or gradients for steadier as it falls."""
BOTH_SIGNS = 0.1
"""Share of rows on either side of zero, and of neighbours on different sides, from which a loss is a surrogate."""


def weighed(run: RunView, findings: Sequence[Finding]) -> list[Finding]:
    """The findings, those about levels as information where the losses are of two adversaries or a sum of changing weights.

    A side's loss rises and its gradients grow as the other side gets better, and neither comes back (Goodfellow et al.
    2014 have no loss that both lower); only what ends in values that are not finite is a fault by itself. What breaks in
    a range test is its result, which GD308 tells: it is left out.
    """
    config, schedule = run.run.config, run.schedule
    if schedule is not None and schedule.shape == "range-test":
        return [f for f in findings if f.code not in BROKEN]
    if any(f.code in SURROGATE for f in findings) and _surrogate(run.series("loss").value):
        findings = [_told(f) if f.code in SURROGATE else f for f in findings]
    codes = (
        LEVELS if config.get("adversarial") is True else OF_LOSS if config.get("variational") is True else frozenset()
    )
    return [_told(f) if f.code in codes else f for f in findings]


def _told(finding: Finding) -> Finding:
    """The finding as information, unless it ends in values that are not finite."""
    return finding if finding.measure("ends_nonfinite") is True else replace(finding, severity=Severity.INFO)


def _surrogate(loss: Floats) -> bool:
    """Whether the loss goes from one side of zero to the other all along: that of a policy gradient, whose size follows the
    advantages of the moment."""
    if len(loss) < 20:
        return False
    below = loss < 0
    share = float(below.mean())
    return BOTH_SIGNS <= share <= 1 - BOTH_SIGNS and float(np.mean(below[1:] != below[:-1])) >= BOTH_SIGNS
