"""GD201: a gradient norm far above its own level that stays there."""

from __future__ import annotations

import numpy as np
import pytest

from gdiag.analyzers.gradient_explosion import analyze
from gdiag.analyzers.gradient_spike import analyze as spikes
from gdiag.measures.run import RunView
from gdiag.model import Severity
from tests.analyzers.made_layers import layered, norms
from tests.analyzers.made_runs import Floats, view


def steady(rows: int = 1000, seed: int = 0) -> Floats:
    return np.asarray(np.exp(np.random.default_rng(seed).normal(0, 0.2, rows)), dtype=np.float64)


def test_fires_at_the_onset_of_a_lasting_rise() -> None:
    grad = steady()
    grad[600:] *= 40
    (finding,) = analyze(view({"grad_norm": grad, "lr": np.full(1000, 1e-3)}))
    assert (finding.where.step, finding.where.last_step, finding.severity) == (600, 999, Severity.CRITICAL)
    assert finding.measure("recovered") is False
    assert finding.number("lr_at_onset") == 1e-3


def test_a_long_surge_that_comes_back_is_a_warning() -> None:
    grad = steady()
    grad[600:720] *= 40
    (finding,) = analyze(view({"grad_norm": grad}))
    assert (finding.severity, finding.measure("recovered")) == (Severity.WARNING, True)


def test_ends_that_are_not_finite_are_said() -> None:
    grad = steady()
    grad[600:620] *= np.geomspace(2, 1e6, 20)
    grad[620:] = np.nan
    (finding,) = analyze(view({"grad_norm": grad}))
    assert finding.measure("ends_nonfinite") is True
    assert finding.severity is Severity.CRITICAL


def test_the_layer_that_rose_first_is_named() -> None:
    made = norms(400)
    made["blocks.1.qkv"][300:] *= 100
    for values in made.values():
        values[301:] *= 50
    (finding,) = analyze(layered(made))
    assert finding.where.layer == "blocks.1.qkv"
    assert finding.number("layers_total") == 19


@pytest.mark.parametrize("seed", range(6))
def test_quiet_on_healthy_runs_and_short_spikes(seed: int) -> None:
    grad = steady(2000, seed) * (1 + np.arange(2000) / 800)
    grad[1000] *= 60
    assert analyze(view({"grad_norm": grad})) == []


def slow_rise(loss_end: float) -> RunView:
    """Gradients that grow fifteenfold over 800 steps with one row far out, and a loss that goes from 3 to `loss_end`."""
    rows = np.arange(1200)
    grad = 0.3 * steady(1200) * np.exp(np.log(15) * np.clip((rows - 100) / 800, 0, 1))
    grad[700] *= 60
    loss = 3 + (loss_end - 3) * np.clip((rows - 300) / 400, 0, 1) + np.random.default_rng(2).normal(0, 0.02, 1200)
    return view({"grad_norm": grad, "loss": loss})


def test_a_slow_rise_is_judged_by_where_the_loss_ends() -> None:
    (harmed,) = analyze(slow_rise(4.0))
    (learnt,) = analyze(slow_rise(2.0))
    assert (harmed.severity, learnt.severity) == (Severity.CRITICAL, Severity.INFO)
    assert (harmed.number("ratio") or 99.0) < 15  # of the level reached, not of the row far out


@pytest.mark.parametrize("seed", range(5))
def test_a_slow_rise_under_a_loss_that_stays_is_an_alarm(seed: int) -> None:
    grad = 0.3 * steady(1200, seed) * np.exp(np.log(15) * np.clip((np.arange(1200) - 100) / 800, 0, 1))
    loss = 3.0 + np.random.default_rng(seed).normal(0, 0.05, 1200)
    (finding,) = analyze(view({"grad_norm": grad, "loss": loss}))
    assert finding.severity is Severity.CRITICAL


@pytest.mark.parametrize(("high", "low", "tail"), [(45, 30, 1.0), (20, 60, 1.0), (45, 400, 4.0), (60, 0, 1.0)])
def test_a_surge_is_an_explosion_or_a_spike(high: int, low: int, tail: float) -> None:
    grad = steady() * tail ** (np.arange(1000) >= 600)
    grad[600 : 600 + high] *= 100 / tail
    grad[600 + high : 600 + high + low] *= 4 / tail
    run = view({"grad_norm": grad})
    assert len(analyze(run)) + len(spikes(run)) == 1


def test_threshold_sets_the_ratio() -> None:
    grad = steady()
    grad[600:] *= 14
    assert len(analyze(view({"grad_norm": grad}))) == 1
    assert analyze(view({"grad_norm": grad}), ratio=40.0) == []


def test_gradients_that_grow_while_the_run_learns_are_information() -> None:
    grad = steady()
    grad[100:] *= 40
    rows = np.arange(1000)
    learns = 5 - 0.5 * np.minimum(rows / 100, 1) - 3.5 * np.maximum(0, rows - 100) / 900
    (finding,) = analyze(view({"grad_norm": grad, "loss": learns}))
    assert finding.severity is Severity.INFO
    (finding,) = analyze(view({"grad_norm": grad, "loss": np.where(rows < 100, learns, 6.0)}))
    assert finding.severity is Severity.CRITICAL


def test_gradients_with_which_much_was_learned_are_information_whatever_came_later() -> None:
    grad, rows = steady(), np.arange(1000)
    grad[60:700] *= 40
    loss = np.where(rows < 60, 2.1, 0.1 + 2.0 * np.exp(-(rows - 60) / 120))
    loss[800:] = 2.1
    (finding,) = analyze(view({"grad_norm": grad, "loss": loss}))
    assert finding.severity is Severity.INFO
    assert (finding.number("learned_meanwhile") or 0) > 0.9


def test_norms_of_steps_that_mixed_precision_skipped_end_nothing() -> None:
    grad, scale = steady(), np.full(1000, 65536.0)
    grad[600:720] *= 40
    for row in (650, 700):
        grad[row], scale[row:] = np.inf, scale[row:] / 2
    (finding,) = analyze(view({"grad_norm": grad, "loss": np.full(1000, 2.0), "loss_scale": scale}))
    assert (finding.severity, finding.measure("ends_nonfinite")) == (Severity.WARNING, False)


@pytest.mark.parametrize(("ends_at", "severity"), [(0.2, Severity.INFO), (2.4, Severity.WARNING)])
def test_a_surge_through_which_the_loss_falls_is_information(ends_at: float, severity: Severity) -> None:
    grad = steady()
    grad[300:500] *= 40
    loss = np.interp(np.arange(1000), [0, 300, 500, 1000], [3.0, 2.4, ends_at, 0.5 * ends_at])
    (finding,) = analyze(view({"grad_norm": grad, "loss": loss}))
    assert finding.severity is severity


def test_one_row_far_out_over_a_slightly_raised_level_is_no_explosion() -> None:
    grad = steady()
    grad[300:] *= 3.2
    grad[700] *= 60
    assert analyze(view({"grad_norm": grad})) == []


def lost_at_the_end(loss: Floats) -> RunView:
    grad = steady() * np.where(np.arange(1000) < 60, 1.0, 20.0)
    grad[960:] = np.nan
    return view({"grad_norm": grad, "loss": np.where(np.arange(1000) < 960, loss, np.nan)})


def test_numbers_lost_long_after_a_run_learned_on_are_another_story() -> None:
    falls = 2.3 * np.exp(-np.arange(1000) / 250) + 0.2
    (finding,) = analyze(lost_at_the_end(falls))
    assert (finding.severity, finding.measure("ends_nonfinite")) == (Severity.INFO, False)
    (finding,) = analyze(lost_at_the_end(np.full(1000, 2.3)))
    assert (finding.severity, finding.measure("ends_nonfinite")) == (Severity.CRITICAL, True)
