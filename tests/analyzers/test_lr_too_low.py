"""GD304: the learning rate is too low to learn."""

from __future__ import annotations

import numpy as np
import pytest

from gdiag.analyzers.lr_too_low import analyze
from gdiag.measures.run import RunView
from gdiag.model import Severity
from tests.analyzers.made_runs import Floats, cosine, learning, view


def crawling(start: float = 10.8, gain: float = 0.4, noise: float = 0.03) -> RunView:
    lr = cosine(1000, peak=1e-7)
    spent = np.cumsum(lr) / lr.sum()
    rng = np.random.default_rng(5)
    loss: Floats = start - gain * spent + noise * rng.standard_normal(1000)
    return view({"lr": lr, "loss": loss, "grad_norm": 3.0 + 0.2 * rng.standard_normal(1000)})


def test_fires_on_a_loss_in_proportion_to_the_rate_spent() -> None:
    (finding,) = analyze(crawling())
    assert finding.severity is Severity.WARNING
    assert (finding.where.step, finding.where.last_step) == (0, 999)
    assert finding.number("late_gain_share") == pytest.approx(0.5, abs=0.1)


def test_is_information_where_the_model_may_be_trained_already() -> None:
    (finding,) = analyze(crawling(start=1.4, gain=0.08, noise=0.005))
    assert finding.severity is Severity.INFO


@pytest.mark.parametrize("seed", range(5))
def test_quiet_on_a_learning_run(seed: int) -> None:
    assert analyze(view({"lr": cosine(), "loss": learning(seed=seed)})) == []


@pytest.mark.parametrize(("peak", "fires"), [(3e-8, True), (3e-4, False)])
def test_a_flat_loss_is_put_down_to_a_tiny_rate_only(peak: float, fires: bool) -> None:
    loss = 10.8 + 0.3 * np.random.default_rng(1).standard_normal(1000)
    assert bool(analyze(view({"lr": cosine(peak=peak), "loss": loss}))) is fires


def test_a_flat_loss_is_put_down_to_the_rate_when_parameters_stand_still() -> None:
    loss = 10.8 + 0.3 * np.random.default_rng(1).standard_normal(1000)
    still, moving = np.full(1000, 50.0), np.linspace(50, 60, 1000)
    assert len(analyze(view({"lr": cosine(), "loss": loss, "param_norm": still}))) == 1
    assert analyze(view({"lr": cosine(), "loss": loss, "param_norm": moving})) == []


def test_threshold_is_the_gain() -> None:
    assert analyze(crawling(), most_gain=0.03) == []


def test_quiet_where_the_loss_is_logged_in_the_first_steps_only() -> None:
    run = crawling()
    blank = [None] * 2000
    longer = {name: [*run.series(name).value.tolist(), *blank] for name in ("lr", "loss", "grad_norm")}
    assert analyze(view(longer)) == []


def test_a_guess_among_ten_classes_is_no_trained_model() -> None:
    loss = np.log(10) + 0.05 * np.random.default_rng(1).standard_normal(1000)
    assert len(analyze(view({"lr": cosine(peak=1e-6), "loss": loss}))) == 1
    assert analyze(view({"lr": cosine(peak=1e-6), "loss": loss - 0.2})) == []


def test_quiet_where_the_rate_is_low_for_no_optimizer() -> None:
    run = crawling()
    steep = {"lr": cosine(1000, peak=0.2), "loss": run.series("loss").value, "grad_norm": run.series("grad_norm").value}
    assert analyze(view(steep)) == []
    assert len(analyze(view(steep | {"lr": cosine(1000, peak=0.05)}))) == 1


def test_a_language_model_does_not_guess_among_ten_classes() -> None:
    loss = np.log(10) + 0.05 * np.random.default_rng(1).standard_normal(1000)
    assert analyze(view({"lr": cosine(peak=1e-6), "loss": loss, "tokens_per_s": np.full(1000, 1e5)})) == []


def test_a_short_log_that_ends_in_its_warm_up_says_nothing() -> None:
    rng = np.random.default_rng(2)
    columns = {
        "lr": np.linspace(0, 2e-7, 200),
        "loss": 10.8 - 0.4 * (np.arange(200) / 200) ** 2 + 0.03 * rng.standard_normal(200),
    }
    assert analyze(view(columns)) == []
    assert len(analyze(view(columns), least_rows=100)) == 1
