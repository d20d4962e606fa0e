"""GD308: a learning rate raised until training breaks is a range test, and what breaks is its result."""

from __future__ import annotations

import numpy as np
import pytest

from gdiag.analyzers import unstable_at_peak_lr
from gdiag.analyzers.objectives import weighed
from gdiag.analyzers.range_test import analyze
from gdiag.measures.run import RunView
from gdiag.model import Severity
from tests.analyzers.made_runs import Floats, cosine, learning, view


def ramp(lr: Floats) -> RunView:
    """A loss that falls until the rate is 0.1 and rises from there on."""
    rng = np.random.default_rng(2)
    fall = 4.8 - 0.4 * np.log10(np.clip(lr, 1e-6, 0.1) / 1e-6)
    return view(
        {"lr": lr, "loss": fall + 3.0 * np.maximum(0, np.log10(lr / 0.1)) + 0.02 * rng.standard_normal(len(lr))}
    )


def test_names_the_range_and_the_lowest_loss() -> None:
    (finding,) = analyze(ramp(np.geomspace(1e-6, 1.0, 300)))
    assert finding.severity is Severity.INFO
    assert finding.number("lr_at_lowest_loss") == pytest.approx(0.1, rel=0.5)


def test_what_breaks_is_left_out_of_a_range_test_only() -> None:
    run, warming = ramp(np.geomspace(1e-6, 1.0, 300)), ramp(np.linspace(0.001, 1.0, 300))
    assert weighed(run, unstable_at_peak_lr.analyze(run)) == []
    assert [f.code for f in weighed(warming, unstable_at_peak_lr.analyze(warming))] == ["GD307"]


def test_quiet_on_warmups_and_schedules() -> None:
    fading = np.asarray(1e-3 * 0.99 ** np.arange(500), dtype=np.float64)
    for lr in (np.linspace(1e-6, 1e-3, 500), cosine(500), fading, np.geomspace(1e-5, 5e-4, 500)):
        assert analyze(view({"lr": lr, "loss": learning(500)})) == []


def test_threshold_is_the_smoothing() -> None:
    (finding,) = analyze(ramp(np.geomspace(1e-6, 1.0, 300)), rows=200)
    assert finding.number("lr_at_lowest_loss") is None
