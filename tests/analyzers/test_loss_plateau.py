"""GD108: a loss that stands still too early."""

from __future__ import annotations

import numpy as np
import pytest

from gdiag.analyzers.loss_plateau import analyze
from gdiag.model import Severity
from tests.analyzers.made_runs import Floats, cosine, learning, view


def stopped(at: int, rows: int = 2000) -> Floats:
    clean = learning(rows, noise=0)
    clean[at:] = clean[at]
    return clean + np.random.default_rng(3).normal(0, 0.05, rows)


def test_fires_where_the_learning_rate_is_spent() -> None:
    lr = cosine(2000)
    lr[600:] = 1e-8
    (finding,) = analyze(view({"loss": stopped(600), "lr": lr}))
    assert finding.severity is Severity.WARNING
    assert finding.where.step == pytest.approx(600, abs=200)
    assert finding.number("lr_share_of_peak") < 0.01  # type: ignore[operator]


def test_a_spent_rate_stopped_nothing_before_it_was_spent() -> None:
    lr = np.full(2000, 1e-3)
    lr[900:] = 1e-8
    (finding,) = analyze(view({"loss": stopped(700), "lr": lr}))
    assert finding.where.step == 900
    assert "from step 900 to the end, 55% of the run" in finding.message


def test_fires_where_a_new_model_is_stuck() -> None:
    loss = np.maximum(6.9, learning(2000, noise=0, start=10.8)) + np.random.default_rng(3).normal(0, 0.05, 2000)
    (finding,) = analyze(view({"loss": loss, "lr": np.full(2000, 1e-3)}))
    assert finding.severity is Severity.WARNING


def test_fires_where_the_loss_is_down_to_token_frequencies_within_a_few_rows() -> None:
    row, rng = np.arange(560), np.random.default_rng(5)
    loss = 3.4 + 2.15 * np.exp(-2.0 * row) - 0.02 * np.log(row + 1) / np.log(560) + rng.normal(0, 0.15, 560)
    loss[0] = 5.55
    (finding,) = analyze(view({"loss": loss, "lr": np.full(560, 0.02)}))
    assert finding.severity is Severity.WARNING
    later = {
        "step": row + 5000,
        "loss": loss,
        "lr": np.full(560, 0.02),
    }  # the middle of a run: nothing says where it began
    assert all(f.severity is Severity.INFO for f in analyze(view(later)))


def test_fires_where_a_model_falls_to_a_guess_and_stays() -> None:
    rng = np.random.default_rng(1)
    loss = np.log(8) + rng.normal(0, 0.01, 500)
    loss[:8] += 40 * np.exp(-np.arange(8) / 1.5)  # initialized so large that it is sure of wrong answers
    right = rng.binomial(64, 1 / 8, 500) / 64
    (finding,) = analyze(view({"loss": loss, "accuracy": right}))
    assert (finding.severity, finding.number("classes_guessed")) == (Severity.WARNING, 8)
    assert finding.number("first_over_guess") == pytest.approx(20, abs=1)
    assert analyze(view({"loss": loss, "accuracy": np.linspace(0.3, 0.6, 500)})) == []


def test_quiet_on_healthy_runs() -> None:
    assert analyze(view({"loss": learning(2000), "lr": cosine(2000)})) == []
    assert analyze(view({"loss": learning(2000)})) == []


def test_quiet_on_a_converged_model() -> None:
    loss = 2.3 * np.exp(-np.arange(2000) / 60.0) + 0.05 + np.random.default_rng(1).normal(0, 0.01, 2000)
    assert analyze(view({"loss": loss, "lr": np.full(2000, 1e-3)})) == []


def test_threshold_sets_the_flat_share() -> None:
    lr = cosine(2000)
    lr[600:] = 1e-8
    assert analyze(view({"loss": stopped(600), "lr": lr}), spent_flat=0.9, flat=0.9) == []


def test_the_end_of_a_schedule_is_no_spent_rate() -> None:
    rng = np.random.default_rng(0)
    falling = np.maximum(10.8 - 1.1 * np.log1p(np.arange(2000) / 2), 3.53) + rng.normal(0, 0.05, 2000)
    falling[-720:] -= np.linspace(0, 0.03, 720)
    assert analyze(view({"loss": falling, "lr": cosine(2000, floor=0.0)})) == []


def test_quiet_where_the_data_grow_harder() -> None:
    loss = np.maximum(6.9, learning(2000, noise=0, start=10.8)) + np.random.default_rng(3).normal(0, 0.05, 2000)
    columns = {"loss": loss, "lr": np.full(2000, 1e-3)}
    hardening = np.linspace(4.0, 6.0, 2000) + np.random.default_rng(4).normal(0, 0.2, 2000)
    assert analyze(view(columns | {"token_entropy": hardening})) == []
    assert len(analyze(view(columns | {"token_entropy": hardening[::-1]}))) == 1
    assert len(analyze(view(columns | {"token_entropy": np.full(2000, 5.0)}))) == 1


def test_entropy_that_rises_by_chance_excuses_nothing() -> None:
    found = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        loss = np.maximum(3.8, 4.6 - 0.008 * np.arange(1000)) + rng.normal(0, 0.02, 1000)
        run = {"loss": loss, "lr": np.full(1000, 1e-3)}
        plain = len(analyze(view(run)))
        found += plain
        assert len(analyze(view(run | {"token_entropy": rng.normal(7, 0.3, 1000)}))) == plain
    assert found


def test_a_model_that_falls_to_the_token_frequencies_at_once_began_from_scratch() -> None:
    loss = 3.4 + np.random.default_rng(3).normal(0, 0.1, 400)
    loss[:8] = [4.8, 4.6, 4.0, 3.9, 3.7, 3.5, 3.5, 3.4]
    (finding,) = analyze(view({"loss": loss}))
    assert finding.severity is Severity.WARNING
    loss[:8] = 3.7
    assert [f.severity for f in analyze(view({"loss": loss}))] in ([], [Severity.INFO])


def stuck(until: int, rows: int = 1000, level: float = 3.2) -> Floats:
    """A loss that falls to `level` within some rows, stays there `until` a row and falls on."""
    loss = level + 2.3 * np.exp(-np.arange(rows) / 8.0) + np.random.default_rng(7).normal(0, 0.05, rows)
    loss[until:] -= np.linspace(0, 0.4, rows - until)
    return loss


def test_a_loss_that_is_stuck_for_long_and_falls_in_the_end_is_told() -> None:
    (finding,) = analyze(view({"loss": stuck(600), "lr": np.linspace(0.02, 0.002, 1000)}))
    assert finding.severity is Severity.WARNING
    assert finding.measure("falls_on") is True
    assert finding.where.step == pytest.approx(50, abs=50)
    assert finding.where.last_step in (499, 599)
    assert finding.number("lr_share_then") == pytest.approx(0.5, abs=0.1)
    assert analyze(view({"loss": stuck(300)})) == []
    assert analyze(view({"loss": stuck(600)}), stretch=0.7) == []
    assert analyze(view({"loss": stuck(600, level=1.8)})) == []


def test_a_step_up_makes_no_plateau_of_what_learned() -> None:
    loss = 2.2 + 2.5 * (1 + np.arange(2000) / 60.0) ** -0.7 + np.random.default_rng(7).normal(0, 0.05, 2000)
    loss[1200:] += 0.5
    assert analyze(view({"loss": loss})) == []


def test_a_rate_held_at_a_tenth_is_not_spent() -> None:
    lr = np.full(2000, 1e-3)
    lr[800:] = 0.9986e-4
    loss = stopped(800)
    assert analyze(view({"loss": loss, "lr": lr})) == []
    lr[800:] = 0.9e-4
    assert len(analyze(view({"loss": loss, "lr": lr}))) == 1


@pytest.mark.parametrize(("growth", "severity"), [(2.0, Severity.WARNING), (1.1, Severity.INFO)])
def test_weights_that_grow_while_nothing_is_learned_are_no_tuning(growth: float, severity: Severity) -> None:
    loss = 0.45 + np.random.default_rng(0).normal(0, 0.003, 600)
    loss[:20] += 0.06
    norm = np.minimum(20 * growth, 20 + np.arange(600) * growth / 3)
    (finding,) = analyze(view({"loss": loss, "lr": np.full(600, 0.05), "param_norm": norm}))
    assert finding.severity is severity
    assert (finding.number("weights_moved") is None) == (severity is Severity.INFO)


def test_weights_that_grow_while_the_loss_reaches_its_floor_have_learned() -> None:
    loss = 0.3 + 0.2 * np.exp(-np.arange(600) / 8.0) + np.random.default_rng(0).normal(0, 0.003, 600)
    norm = np.minimum(40, 20 + np.arange(600) / 3)
    (finding,) = analyze(view({"loss": loss, "lr": np.full(600, 0.05), "param_norm": norm}))
    assert (finding.severity, finding.number("weights_moved")) == (Severity.INFO, None)
