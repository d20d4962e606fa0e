"""GD305: the run starts at its full learning rate."""

from __future__ import annotations

import numpy as np

from gdiag.analyzers.missing_warmup import analyze
from gdiag.model import Severity
from tests.analyzers.made_runs import cosine, learning, view


def test_is_information_on_a_healthy_run() -> None:
    (finding,) = analyze(view({"lr": cosine(warmup=0), "loss": learning()}))
    assert finding.severity is Severity.INFO


def test_warns_when_the_first_steps_are_unstable() -> None:
    loss = learning()[:60]
    loss[8:] = 20 + np.arange(52)
    (finding,) = analyze(view({"lr": np.full(60, 0.1), "loss": loss}))
    assert finding.severity is Severity.WARNING
    assert (finding.where.step, finding.where.last_step) == (0, 8)


def test_warns_when_gradients_are_wild_and_the_run_ends_in_nan() -> None:
    grad = np.full(80, 1.0)
    grad[[4, 7, 9, 13]] = 1e6
    loss = learning(80)
    loss[50:] = np.nan
    (finding,) = analyze(view({"lr": np.full(80, 0.1), "loss": loss, "grad_norm": grad}))
    assert finding.severity is Severity.WARNING
    assert finding.measure("ends_nonfinite") is True


def test_quiet_with_a_warmup_or_in_the_middle_of_a_run() -> None:
    assert analyze(view({"lr": cosine()})) == []
    assert analyze(view({"step": np.arange(5000, 6000), "lr": cosine(warmup=0)})) == []


def test_threshold_is_the_first_rate() -> None:
    lr = cosine(warmup=0)
    lr[0] *= 0.98
    assert len(analyze(view({"lr": lr}))) == 1
    assert analyze(view({"lr": lr}), share=0.99) == []


def test_warns_when_gradients_surge_and_nothing_is_learned() -> None:
    grad = np.concatenate(([2.0, 2.2, 5.0, 20.0], np.full(796, 40.0)))
    loss = 10.5 + 0.1 * np.random.default_rng(4).standard_normal(800)
    (finding,) = analyze(view({"lr": cosine(800, warmup=0), "loss": loss, "grad_norm": grad}))
    assert finding.severity is Severity.WARNING
    assert "gradients grow" in finding.message


def test_warns_when_gradients_are_large_until_the_rate_has_fallen() -> None:
    lr = cosine(800, warmup=0, floor=0.0)
    grad = np.where(lr > 1.3e-4, 100.0, 2.0)
    loss = np.where(lr > 1.3e-4, 10.2, 6.0)
    (finding,) = analyze(view({"lr": lr, "loss": loss, "grad_norm": grad}))
    assert finding.severity is Severity.WARNING
    assert "until the rate has fallen" in finding.message


def test_warns_where_the_first_updates_carry_the_weights_off() -> None:
    rate = np.linspace(0.07, 0.001, 600)
    norm = 20 * np.exp(0.1 * np.minimum(np.arange(600), 20))
    (finding,) = analyze(view({"lr": rate, "loss": learning(600), "param_norm": norm}))
    assert finding.severity is Severity.WARNING
    assert "the norm of the weights grows 7.39-fold from step 0 to 20" in finding.message
    (finding,) = analyze(view({"lr": rate, "loss": learning(600), "param_norm": np.full(600, 20.0)}))
    assert finding.severity is Severity.INFO
