"""GD113: the loss changes its unit."""

from __future__ import annotations

import numpy as np
import pytest

from gdiag.analyzers.scale_mismatch import analyze
from gdiag.measures.loss_units import factors
from gdiag.measures.run import RunView
from gdiag.model import Severity
from tests.analyzers.made_runs import learning, view

STEP = np.concatenate((np.arange(600), np.arange(550, 1000)))


def resumed(factor: float, shift: float = 0.0) -> RunView:
    return view({"step": STEP, "loss": np.concatenate((learning()[:600], factor * learning(seed=1)[550:] + shift))})


@pytest.mark.parametrize("factor", [2, 8, 64])
def test_fires_where_level_and_noise_are_multiplied(factor: int) -> None:
    (finding,) = analyze(resumed(factor))
    assert finding.severity is Severity.WARNING
    assert (finding.where.step, finding.number("factor")) == (550, factor)


def test_quiet_on_other_factors_and_on_shifts() -> None:
    assert analyze(resumed(1.0)) == []
    assert analyze(resumed(2.45)) == []
    assert analyze(resumed(1.0, shift=float(np.median(learning()[500:600])))) == []


def test_tells_of_a_first_loss_that_is_a_sum() -> None:
    loss = 8 * learning(start=float(np.log(50257)))
    (finding,) = analyze(view({"loss": loss}, vocabulary=50257.0))
    assert finding.severity is Severity.INFO
    assert finding.number("factor") == 8


def test_tells_of_perplexities() -> None:
    loss = learning()
    evaluation: list[float | None] = [None] * 1000
    for step in range(49, 1000, 50):
        evaluation[step] = float(np.exp(np.median(loss[step - 9 : step + 1])))
    (finding,) = analyze(view({"loss": loss, "eval_loss": evaluation}))
    assert finding.measure("unit") == "perplexity"


def test_threshold_is_the_distance_from_the_integer() -> None:
    assert analyze(resumed(2.0), tolerance=1e-9) == []


def test_the_end_of_a_spike_is_no_factor() -> None:
    loss = 1.1 + np.random.default_rng(4).normal(0, 0.1, 300)
    loss[:200] = 1.1 + np.random.default_rng(5).normal(0, 0.2, 200)
    loss[180:200] += 1.1
    assert factors(view({"loss": loss}).series("loss"), [200]) == []


def test_quiet_where_noise_alone_meets_an_integer() -> None:
    rng = np.random.default_rng(2)
    for _ in range(40):
        loss = (1 + 3 * np.exp(-np.arange(60) / 15)) * np.exp(0.3 * rng.standard_normal(60))
        assert [f for f in analyze(view({"loss": loss})) if f.severity > Severity.INFO] == []


@pytest.mark.parametrize(("growth", "found"), [(1.0, 1), (3.0, 1), (40.0, 0)])
def test_gradients_that_explode_with_it_are_those_of_a_divergence(growth: float, found: int) -> None:
    loss, grad = learning(), np.exp(np.random.default_rng(0).normal(0, 0.1, 1000))
    loss[550:] *= 3
    grad[550:] *= growth
    run = view({"loss": loss, "grad_norm": np.asarray(grad, dtype=np.float64)})
    assert len(factors(run.series("loss"), [550], run.grad_norm)) == found
