"""GD109: the loss after a resume."""

from __future__ import annotations

import numpy as np
import pytest

from gdiag.analyzers.resume_jump import analyze
from gdiag.measures.run import RunView
from gdiag.model import Severity
from tests.analyzers.made_runs import Floats, learning, view

STEP = np.concatenate((np.arange(600), np.arange(550, 1000)))


def run(after: Floats) -> RunView:
    return view({"step": STEP, "loss": np.concatenate((learning()[:600], after)), "grad_norm": np.full(1050, 0.8)})


def test_warns_of_a_transient_with_its_end() -> None:
    (finding,) = analyze(run(learning(seed=1)[550:] + 1.0 * 0.5 ** (np.arange(450) / 25)))
    assert finding.severity is Severity.WARNING
    assert (finding.where.step, finding.measure("kind"), finding.measure("recovered")) == (550, "transient", True)
    assert finding.where.last_step is not None
    assert 600 < finding.where.last_step < 700
    assert finding.number("grad_ratio") == 1.0


def test_the_first_step_tells_weights_from_moments() -> None:
    harm = 1.0 * 0.5 ** (np.arange(450) / 25)
    (finding,) = analyze(run(learning(seed=1)[550:] + harm))
    assert finding.number("first_excess") == pytest.approx(1.0, abs=0.3)  # before any update: what was loaded
    harm[0] = 0.0
    (finding,) = analyze(run(learning(seed=1)[550:] + harm))
    assert finding.number("first_excess") is None
    assert finding.number("over_start") is None


def test_a_loss_above_that_of_the_untrained_model_is_said() -> None:
    harm = 12.0 * 0.5 ** (np.arange(450) / 3)
    (finding,) = analyze(run(learning(seed=1)[550:] + harm))
    assert finding.number("over_start") > 1  # type: ignore[operator]


def test_critical_when_the_model_is_fresh() -> None:
    (finding,) = analyze(run(learning(seed=1)[:450]))
    assert finding.severity is Severity.CRITICAL
    assert finding.measure("kind") == "fresh_model"


def test_quiet_on_a_clean_resume() -> None:
    assert analyze(run(learning(seed=1)[550:])) == []


def test_warns_of_a_log_that_begins_late_with_an_untrained_model() -> None:
    loss, grad = [12.0 * 0.97**i for i in range(20)], [1000 * 0.8**i for i in range(20)]
    (finding,) = analyze(view({"step": 136_004 + np.arange(20), "loss": loss, "grad_norm": grad}))
    assert finding.measure("kind") == "fresh_model"
    assert analyze(view({"step": 136_004 + np.arange(20), "loss": np.full(20, 2.1)})) == []


def test_threshold_is_the_least_difference() -> None:
    jumped = run(learning(seed=1)[550:] + 0.5)
    assert len(analyze(jumped)) == 1
    assert analyze(jumped, factor=20.0) == []
