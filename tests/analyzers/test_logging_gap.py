"""GD002: holes in a regular log."""

from __future__ import annotations

import numpy as np

from gdiag.analyzers.logging_gap import analyze
from gdiag.model import Severity
from tests.analyzers.made_runs import learning, view


def test_fires_on_a_hole() -> None:
    step = np.concatenate([np.arange(0, 500), np.arange(600, 1100)])
    (finding,) = analyze(view({"step": step, "loss": learning()}))
    assert finding.severity is Severity.INFO
    assert (finding.where.step, finding.where.last_step) == (499, 600)
    assert finding.number("missing_steps") == 100
    assert analyze(view({"step": step, "loss": learning()}), factor=200) == []


def test_quiet_on_regular_and_on_sampled_logs() -> None:
    assert analyze(view({"step": np.arange(0, 10_000, 10), "loss": learning()})) == []
    sampled = np.sort(np.random.default_rng(0).choice(100_000, 1000, replace=False))
    assert analyze(view({"step": sampled, "loss": learning()})) == []
