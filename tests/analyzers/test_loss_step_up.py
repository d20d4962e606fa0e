"""GD105: a level that stays up."""

from __future__ import annotations

import numpy as np
import pytest

from gdiag.analyzers.loss_divergence import analyze as diverges
from gdiag.analyzers.loss_step_up import analyze
from gdiag.model import Severity
from tests.analyzers.made_runs import learning, view
from tests.measures.made import climb, spike


def test_fires_at_the_step() -> None:
    (finding,) = analyze(view({"loss": learning(2000) + climb(2000, 1200, 0.5, 2)}))
    assert finding.severity is Severity.WARNING
    assert finding.where.step == pytest.approx(1200, abs=2)
    assert finding.number("after_effect") == pytest.approx(0.5, abs=0.2)
    assert finding.measure("recovered") is False


def test_works_below_zero() -> None:
    (finding,) = analyze(view({"loss": learning(2000) - 20 + climb(2000, 1200, 0.5, 2)}))
    assert finding.evidence[0].unit == ""


def test_quiet_on_spikes_and_steps_down() -> None:
    assert analyze(view({"loss": learning(2000) + spike(2000, 1200, 2.0, 15)})) == []
    assert analyze(view({"loss": learning(2000) - 0.5 * (np.arange(2000) > 1000)})) == []


def test_threshold_sets_the_least_excess() -> None:
    assert analyze(view({"loss": learning(2000) + climb(2000, 1200, 0.5, 2)}), z=50) == []


def test_longer_sequences_explain_a_step() -> None:
    loss = learning(2000) + climb(2000, 1200, 0.5, 2)
    longer = np.where(np.arange(2000) < 1200, 1024, 2048)
    (finding,) = analyze(view({"loss": loss, "seq_len": longer}))
    assert finding.severity is Severity.INFO
    assert finding.number("seq_len_ratio") == 2


def test_tells_how_validation_moves() -> None:
    loss = learning(2000) + climb(2000, 1200, 0.5, 2)
    evals = np.where(np.arange(2000) % 50 == 0, learning(2000, seed=5), np.nan)
    said = [None if np.isnan(v) else float(v) for v in evals]
    harmed = [v if v is None or i < 1200 else v + 0.5 for i, v in enumerate(said)]
    (flat,) = analyze(view({"loss": loss, "eval_loss": said}))
    (moved,) = analyze(view({"loss": loss, "eval_loss": harmed}))
    assert abs(flat.number("eval_z") or 0.0) < 2
    assert (moved.number("eval_z") or 0.0) > 3
    (bare,) = analyze(view({"loss": loss}))
    assert bare.number("eval_z") is None


@pytest.mark.parametrize(("ramp", "at_once"), [(1, True), (12, False)])
def test_tells_a_step_from_a_climb(ramp: int, at_once: bool) -> None:
    (finding,) = analyze(view({"loss": learning(2000) + climb(2000, 1200, 0.8, ramp)}))
    assert finding.measure("at_once") is at_once


def test_a_loss_in_another_unit_is_information() -> None:
    loss = learning(2000) * np.where(np.arange(2000) < 1200, 1.0, 2.0)
    findings = analyze(view({"loss": loss})) + diverges(view({"loss": loss}))
    assert [(f.severity, f.number("factor")) for f in findings] == [(Severity.INFO, 2)]
