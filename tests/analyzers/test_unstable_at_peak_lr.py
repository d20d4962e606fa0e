"""GD307: the run goes out of control as the learning rate reaches its peak."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import gdiag
from gdiag.analyzers.unstable_at_peak_lr import analyze
from gdiag.model import Severity
from tests.analyzers.made_runs import Floats, cosine, learning, view


def exploding(at: int = 60, back: int | None = None, total: int = 1000) -> Floats:
    loss = learning(total)
    rng = np.random.default_rng(1)
    loss[at:back] = np.minimum(80, 5 + 2 * np.arange(total)[: len(loss[at:back])]) * rng.uniform(
        0.8, 1.2, len(loss[at:back])
    )
    return loss


def test_critical_when_the_loss_never_comes_back() -> None:
    (finding,) = analyze(view({"lr": cosine(warmup=100), "loss": exploding()}))
    assert finding.severity is Severity.CRITICAL
    assert finding.where.step is not None
    assert abs(finding.where.step - 60) <= 4
    assert finding.number("lr_share_of_peak") == pytest.approx(0.6, abs=0.05)


@pytest.mark.parametrize(("floor", "fires"), [(3.2, True), (0.8, False)])
def test_what_was_learned_in_the_warm_up_must_be_little(floor: float, fires: bool) -> None:
    loss = floor + (5.5 - floor) * np.exp(-np.arange(900) / 2) + 0.05 * np.random.default_rng(1).standard_normal(900)
    loss[:3], loss[14] = 5.5, 7.5
    assert bool(analyze(view({"lr": cosine(900, warmup=19), "loss": loss}))) is fires


def test_warning_when_it_comes_back_late() -> None:
    (finding,) = analyze(view({"lr": cosine(warmup=100), "loss": exploding(back=600)}))
    assert finding.severity is Severity.WARNING


def test_critical_when_wild_gradients_end_in_nan() -> None:
    loss, grad = learning(150), np.ones(150)
    loss[110:] = np.nan
    grad[[70, 75, 80, 90, 101]] = 1e9
    lr = np.minimum(1, np.arange(1, 151) / 80)
    (finding,) = analyze(view({"lr": lr, "loss": loss, "grad_norm": grad}))
    assert finding.severity is Severity.CRITICAL
    assert (finding.where.step, finding.measure("kind")) == (70, "gradient")


def test_a_nan_long_after_the_run_had_come_back_is_another_story() -> None:
    loss = exploding(back=140)
    (lasting,) = analyze(view({"lr": cosine(warmup=100), "loss": exploding(back=600)}))
    assert lasting.measure("ends_nonfinite") is False
    loss[900:] = np.nan
    assert all(f.measure("ends_nonfinite") is False for f in analyze(view({"lr": cosine(warmup=100), "loss": loss})))


def test_warning_when_learning_ends_with_a_violent_step_in_the_warmup() -> None:
    loss = 3.2 + 2.4 * np.exp(-np.arange(1000) / 12) + 0.1 * np.random.default_rng(2).standard_normal(1000)
    grad = np.full(1000, 0.3)
    calm = view({"lr": cosine(warmup=100), "loss": loss, "grad_norm": grad.copy()})
    assert analyze(calm) == []
    grad[80] = 300.0
    (finding,) = analyze(view({"lr": cosine(warmup=100), "loss": loss, "grad_norm": grad}))
    assert finding.severity is Severity.WARNING
    assert finding.where.step == 80


@pytest.mark.parametrize("noise", [0.02, 0.3])
@pytest.mark.parametrize("seed", range(4))
def test_quiet_on_healthy_runs(seed: int, noise: float) -> None:
    grad = np.random.default_rng(seed).lognormal(0, 0.3, 1000)
    for lr in (cosine(), cosine(warmup=0), np.full(1000, 1e-3)):
        assert analyze(view({"lr": lr, "loss": learning(seed=seed, noise=noise), "grad_norm": grad})) == []


def test_quiet_on_nan_without_a_run_up_and_on_late_trouble() -> None:
    loss = learning()
    loss[90:] = np.nan
    assert analyze(view({"lr": cosine(), "loss": loss})) == []
    assert analyze(view({"lr": cosine(), "loss": exploding(at=500)})) == []


def test_threshold_is_the_lasting_share() -> None:
    run = view({"lr": cosine(warmup=100), "loss": exploding(back=600)})
    assert analyze(run, lasting=0.9) == []


def test_critical_when_gradients_surge_and_nothing_is_learned() -> None:
    grad = np.concatenate(([2.0, 2.2, 5.0, 20.0], np.full(796, 40.0)))
    loss = 10.5 + 0.1 * np.random.default_rng(4).standard_normal(800)
    (finding,) = analyze(view({"lr": cosine(800, warmup=20), "loss": loss, "grad_norm": grad}))
    assert finding.severity is Severity.CRITICAL
    assert (finding.measure("kind"), finding.where.step) == ("surge", 3)
    assert analyze(view({"lr": cosine(800, warmup=20), "loss": learning(800), "grad_norm": grad})) == []


def test_warns_of_weights_that_the_first_updates_carry_off() -> None:
    rate = 300 * cosine(800, warmup=20)
    norm = 20 * np.exp(0.1 * np.minimum(np.arange(800), 20))
    (finding,) = analyze(view({"lr": rate, "loss": learning(800), "param_norm": norm}))
    assert finding.severity is Severity.WARNING
    assert (finding.measure("kind"), finding.where.step, finding.where.last_step) == ("weights", 0, 20)
    assert "grows 7.39-fold from step 0 to 20" in finding.message
    assert analyze(view({"lr": rate, "loss": learning(800), "param_norm": norm**0.05})) == []


def test_warns_of_gradients_that_calm_when_the_rate_falls() -> None:
    lr = cosine(warmup=20, floor=0.0)
    spread = np.where(lr > 1e-4, 0.8, 0.05)
    level = np.where(lr > 1e-4, 4.0, 1.0)
    grad = level * np.exp(spread * np.random.default_rng(6).standard_normal(1000))
    (finding,) = analyze(view({"lr": lr, "loss": learning(), "grad_norm": grad}))
    assert finding.severity is Severity.WARNING
    assert finding.measure("kind") == "calming"


def test_a_row_of_loud_noise_is_not_violent() -> None:
    loss = learning(1000, noise=0.25, seed=2, start=2.0, end=1.1)
    loss[:40] = np.linspace(2.0, 1.1, 40) + 0.02
    loss[60] = 1.1 + 0.8
    assert analyze(view({"lr": cosine(warmup=45, floor=1.0), "loss": loss})) == []


@pytest.mark.parametrize(("count", "quiet"), [("step", False), ("epoch", True), ("row", True)])
def test_weights_that_grow_from_epoch_to_epoch_are_not_carried_off(tmp_path: Path, count: str, quiet: bool) -> None:
    path = tmp_path / "log.csv"
    own = [f"{i}," if count != "row" else "" for i in range(80)]
    rows = "".join(f"{at}{2.3 * 0.95**i + 0.05:.4f},0.05,{10 * 1.03 ** min(i, 30):.4f}\n" for i, at in enumerate(own))
    path.write_text(f"{'' if count == 'row' else count + ','}loss,lr,param_norm\n{rows}")
    codes = {finding.code for finding in gdiag.diagnose(gdiag.load([path])).findings}
    assert ("GD307" not in codes) == quiet


def test_what_a_jump_of_the_rate_does_later_is_no_instability_at_its_peak() -> None:
    lr, loss = cosine(1000, warmup=30), learning(1000)
    lr[600:640] *= 60
    loss[600:] = 12 + 0.2 * np.random.default_rng(5).standard_normal(400)
    assert analyze(view({"lr": lr, "loss": loss})) == []
