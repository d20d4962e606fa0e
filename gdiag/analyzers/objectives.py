"""Objectives whose level is no measure of progress: what levels of loss and gradient say of two adversaries or a sum of terms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from gdiag.measures.run import RunView
from gdiag.model import Finding, Severity

OF_LOSS: Final = frozenset({"GD104", "GD105", "GD107", "GD108", "GD305", "GD307"})
"""Checks that hold a level of the loss against its own past; GD307 does so beside that of the gradients."""

LEVELS: Final = OF_LOSS | {"GD103", "GD201", "GD213"}
"""Those, and checks of what two adversaries do to each other: spikes that come back, levels of the gradients."""


def weighed(run: RunView, findings: Sequence[Finding]) -> list[Finding]:
    """The findings, those about levels as information where the losses are of two adversaries or a sum of changing weights.

    A side's loss rises and its gradients grow as the other side gets better, and neither comes back (Goodfellow et al.
    2014 have no loss that both lower); only what ends in values that are not finite is a fault by itself.
    """
    config = run.run.config
    codes = (
        LEVELS if config.get("adversarial") is True else OF_LOSS if config.get("variational") is True else frozenset()
    )
    return [
        replace(f, severity=Severity.INFO) if f.code in codes and f.measure("ends_nonfinite") is not True else f
        for f in findings
    ]
