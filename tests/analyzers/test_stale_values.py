"""GD005: repeats to the last digit."""

from __future__ import annotations

import numpy as np

from gdiag.analyzers.stale_values import analyze
from gdiag.model import Severity
from tests.analyzers.made_runs import learning, view


def test_fires_on_repeats() -> None:
    grad = np.random.default_rng(0).random(1000)
    grad[400:410] = grad[400]
    (finding,) = analyze(view({"loss": learning(), "grad_norm": grad}))
    assert finding.severity is Severity.INFO
    assert finding.number("rows") == 10
    assert finding.where.step == 400
    assert analyze(view({"loss": learning(), "grad_norm": grad}), rows=11) == []


def test_quiet_on_rounded_values() -> None:
    assert analyze(view({"loss": np.round(learning(), 1)})) == []
