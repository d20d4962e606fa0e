"""GD007: what the log cannot show."""

from __future__ import annotations

import numpy as np

from gdiag.analyzers.resolution_limit import analyze
from gdiag.model import Severity
from tests.analyzers.made_runs import learning, view


def test_every_ten_steps() -> None:
    run = view({"step": np.arange(0, 10_000, 10), "loss": learning()})
    (finding,) = analyze(run)
    assert finding.severity is Severity.INFO
    assert "every 10 steps" in finding.message
    assert finding.number("shortest_event") == 30
    assert analyze(run, every=20) == []


def test_a_sampled_export_and_rounding() -> None:
    sampled = np.sort(np.random.default_rng(0).choice(100_000, 1000, replace=False))
    (finding,) = analyze(view({"step": sampled, "loss": np.round(learning(), 1)}))
    assert "about one in 100" in finding.message
    assert "rounded to 0.1" in finding.message


def test_quiet_on_a_full_log() -> None:
    assert analyze(view({"loss": learning()})) == []
