"""GD102: spikes that come back, each once; hard batches are none."""

from __future__ import annotations

import numpy as np
import pytest

from gdiag.analyzers.loss_spike import analyze
from gdiag.model import Severity
from tests.analyzers.made_runs import cosine, learning, view
from tests.measures.made import spike


def test_fires_with_the_evidence_that_causes_need() -> None:
    loss = learning() + spike(1000, 600, 2.0, 10)
    grad = np.exp(np.random.default_rng(2).normal(0, 0.1, 1000) + spike(1000, 597, 3.0, 8))
    ids = np.arange(1000) * 16
    columns = {"loss": loss, "grad_norm": grad, "lr": cosine(), "sample_start": ids, "sample_end": ids + 16}
    (finding,) = analyze(view(columns))
    assert finding.severity is Severity.WARNING
    assert finding.where.step == pytest.approx(600, abs=1)
    assert finding.where.line == finding.where.step + 1  # type: ignore[operator]
    assert finding.measure("recovered") is True
    assert finding.number("peak_excess") == pytest.approx(2.0, abs=0.3)
    assert finding.number("grad_lead") == pytest.approx(3, abs=1)
    assert 3 < finding.number("half_life") < 12  # type: ignore[operator]
    assert finding.number("sample_start") == 16 * finding.where.step  # type: ignore[operator]
    assert finding.number("lr_ratio") == pytest.approx(1, abs=0.1)
    names = {m.name for m in finding.evidence}
    assert names >= {"z", "after_effect", "grad_ratio", "lr_at_onset", "lr_share_of_peak", "recovery_step", "log_interval",
                     "noise", "level_before", "steps_lost", "rows"}  # fmt: skip


def test_one_garbled_batch_is_a_spike() -> None:
    loss = learning()
    loss[600] += 4.0
    (finding,) = analyze(view({"loss": loss}))
    assert (finding.where.step, finding.where.last_step) == (600, 600)
    assert finding.measure("lone_row") is True


def test_a_spike_at_the_end_is_unfinished_not_a_divergence() -> None:
    loss = learning()
    loss[-1] *= 1.9
    (finding,) = analyze(view({"loss": loss}))
    assert "the log ends before it comes back" in finding.message
    assert finding.measure("recovered") is False


@pytest.mark.parametrize("every", [5, 10])
def test_a_sparse_log_shows_it_too(every: int) -> None:
    loss = (learning(5000) + spike(5000, 3000, 3.0, 30))[::every]
    (finding,) = analyze(view({"step": np.arange(0, 5000, every), "loss": loss}))
    assert finding.where.step == pytest.approx(3000, abs=every)
    assert finding.number("log_interval") == every
    assert finding.number("grad_lead") is None


def test_quiet_on_hard_batches() -> None:
    loss = learning(2000)
    loss[np.random.default_rng(5).choice(np.arange(200, 2000), 8, replace=False)] += 0.6
    assert analyze(view({"loss": loss})) == []


def test_threshold_sets_the_least_excess() -> None:
    run = view({"loss": learning() + spike(1000, 600, 2.0, 10)})
    assert analyze(run, z=100) == []
    assert analyze(run, share=0.9) == []


def test_a_spike_that_a_restart_took_back_is_said_so() -> None:
    loss = learning() + spike(1000, 900, 2.0, 30)
    step = np.concatenate([np.arange(1000), np.arange(850, 1200)])
    again = learning(1200, seed=3)[850:]
    (finding,) = analyze(view({"step": step, "loss": np.concatenate([loss, again])}))
    assert finding.measure("taken_back") is True
    assert finding.where.step == pytest.approx(900, abs=1)


def test_a_gap_after_the_spike_does_not_date_its_end() -> None:
    loss = learning() + spike(1000, 600, 2.0, 10)
    logged = np.concatenate([np.arange(606), np.arange(700, 1000)])
    (finding,) = analyze(view({"step": logged, "loss": loss[logged]}))
    assert finding.message.endswith("and is back at step 700, the next that is logged")
