"""GD104: divergences, sudden and slow."""

from __future__ import annotations

import numpy as np
import pytest

from gdiag.analyzers import loss_spike, loss_step_up
from gdiag.analyzers.loss_divergence import analyze
from gdiag.model import Severity
from tests.analyzers.made_runs import learning, view
from tests.measures.made import climb, spike


def test_a_divergence_is_one_critical_finding() -> None:
    run = view({"loss": learning(2000) + climb(2000, 1200, 6.0, 200)})
    (finding,) = analyze(run)
    assert finding.severity is Severity.CRITICAL
    assert finding.where.step == pytest.approx(1200, abs=15)
    assert finding.where.last_step == 1999
    assert finding.measure("slow") is False
    assert loss_spike.analyze(run) == loss_step_up.analyze(run) == []


def test_a_slow_rise_is_a_divergence() -> None:
    (finding,) = analyze(view({"loss": learning(2000) + climb(2000, 1100, 0.7, 900)}))
    assert finding.measure("slow") is True
    assert finding.where.step == pytest.approx(1100, abs=200)


def test_a_slow_rise_is_not_held_against_the_evaluations_that_follow_its_onset() -> None:
    evals = [float(v) if i % 50 == 0 else None for i, v in enumerate(learning(2000, seed=5))]
    (finding,) = analyze(view({"loss": learning(2000) + climb(2000, 1100, 0.7, 900), "eval_loss": evals}))
    assert finding.measure("slow") is True
    assert finding.number("eval_z") is None


def test_quiet_on_healthy_runs_and_recovered_spikes() -> None:
    assert analyze(view({"loss": learning(2000)})) == []
    assert analyze(view({"loss": learning(2000) + spike(2000, 1000, 5.0, 40)})) == []


def test_quiet_where_the_loss_wanders() -> None:
    rng = np.random.default_rng(4)
    wave = 0.15 * np.sin(np.arange(4000) / 200.0)
    assert analyze(view({"loss": learning(4000) + wave + rng.normal(0, 0.05, 4000)})) == []


def test_thresholds() -> None:
    slow = view({"loss": learning(2000) + climb(2000, 1100, 0.7, 900)})
    assert analyze(slow, slow_share=0.5) == []
    assert analyze(slow, critical_share=0.5)[0].severity is Severity.WARNING
    assert analyze(view({"loss": learning(2000) + climb(2000, 1200, 6.0, 200)}), z=1e6) == []


@pytest.mark.parametrize(("ramp", "at_once"), [(1, True), (60, False)])
def test_tells_a_leap_from_a_climb(ramp: int, at_once: bool) -> None:
    (finding,) = analyze(view({"loss": learning(2000) + climb(2000, 1200, 6.0, ramp)}))
    assert finding.measure("at_once") is at_once
