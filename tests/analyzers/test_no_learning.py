"""GD107: a loss that stays where it began."""

from __future__ import annotations

import numpy as np
import pytest

from gdiag.analyzers.no_learning import analyze
from gdiag.model import Severity
from tests.analyzers.made_runs import Floats, learning, view


def flat(level: float, rows: int = 1000) -> Floats:
    return level * (1 - 0.02 * np.arange(rows) / rows) + np.random.default_rng(0).normal(0, 0.05, rows)


def test_fires_for_a_model_from_scratch() -> None:
    (finding,) = analyze(view({"loss": flat(10.8)}))
    assert finding.severity is Severity.WARNING
    assert (finding.where.step, finding.where.last_step) == (0, 999)


def test_a_tuned_model_may_stay() -> None:
    (finding,) = analyze(view({"loss": flat(1.4)}))
    assert finding.severity is Severity.INFO


def test_quiet_on_runs_that_learn_and_on_short_ones() -> None:
    assert analyze(view({"loss": learning()})) == []
    assert analyze(view({"loss": flat(10.8, 200)})) == []


def test_threshold_sets_the_share() -> None:
    assert analyze(view({"loss": flat(10.8)}), share=0.99) == []


@pytest.mark.parametrize(
    ("classes", "severity"), [(10, Severity.WARNING), (1000, Severity.WARNING), (12, Severity.INFO), (2, Severity.INFO)]
)
def test_a_guess_among_known_numbers_of_classes_is_no_tuned_model(classes: int, severity: Severity) -> None:
    loss = np.log(classes) + np.random.default_rng(0).normal(0, 0.002, 1000)
    (finding,) = analyze(view({"loss": loss}))
    assert finding.severity is severity
    assert finding.number("classes_guessed") == (classes if classes in (10, 1000) else None)


def test_classes_of_unequal_frequency_cost_a_little_less_from_start_to_end() -> None:
    noise = np.random.default_rng(0).normal(0, 0.002, 1000)
    (finding,) = analyze(view({"loss": 2.27 + noise}))
    assert (finding.severity, finding.number("classes_guessed")) == (Severity.WARNING, 10)
    (finding,) = analyze(view({"loss": np.linspace(2.37, 2.27, 1000) + noise}))
    assert finding.severity is Severity.INFO


def test_a_regression_that_stays_is_no_fresh_language_model() -> None:
    (finding,) = analyze(view({"loss": flat(1200.0) + 20 * np.random.default_rng(1).standard_normal(1000)}))
    assert finding.severity is Severity.INFO


@pytest.mark.parametrize("columns", [{"tokens_per_s": np.full(1000, 1e5)}, {"step": np.arange(50_000, 51_000)}])
def test_a_language_model_and_a_late_log_guess_at_no_level(columns: dict[str, Floats]) -> None:
    loss = np.log(10) + np.random.default_rng(0).normal(0, 0.002, 1000)
    (finding,) = analyze(view({"loss": loss} | columns))
    assert finding.severity is Severity.INFO
    assert finding.measure("classes_guessed") is None


def test_a_rate_warmed_up_from_nothing_begins_a_run_at_any_count() -> None:
    loss = np.log(10) + np.random.default_rng(0).normal(0, 0.002, 1000)
    rate = 1e-5 * np.minimum(1.0, np.arange(1, 1001) / 40)
    late = {"loss": loss, "step": np.arange(50_000, 51_000)}
    (finding,) = analyze(view({**late, "lr": rate}))
    assert (finding.severity, finding.number("classes_guessed")) == (Severity.WARNING, 10)
    (finding,) = analyze(view({**late, "lr": 1e-5 * (1 - np.arange(1000) / 1000)}))  # in mid-schedule
    assert finding.severity is Severity.INFO


def test_an_accuracy_decides_whether_it_is_a_guess() -> None:
    rng = np.random.default_rng(0)
    loss, batch = np.log(8) + rng.normal(0, 0.01, 1000), 32
    right = rng.binomial(batch, 1 / 8, 1000) / batch
    (finding,) = analyze(view({"loss": loss, "accuracy": right}))  # no usual number of classes: the accuracy proves it
    assert (finding.severity, finding.number("classes_guessed")) == (Severity.WARNING, 8)
    (finding,) = analyze(view({"loss": loss + np.log(10 / 8), "accuracy": right + 0.3}))  # ln 10 and often right
    assert (finding.severity, finding.measure("classes_guessed")) == (Severity.INFO, None)


def test_a_loss_that_falls_through_the_level_of_a_guess_is_none() -> None:
    (finding,) = analyze(view({"loss": np.log(10) * np.linspace(1.045, 0.998, 1000)}))
    assert finding.severity is Severity.INFO


@pytest.mark.parametrize(
    ("level", "rate", "growth", "severity"),
    [
        (1.4, 2e-7, 1.0, Severity.WARNING), (0.69, 2e-7, 1.0, Severity.INFO), (1.4, 2e-5, 1.0, Severity.INFO),
        (0.69, 2e-2, 2.0, Severity.WARNING), (0.69, 2e-2, 1.2, Severity.INFO),
    ],
)  # fmt: skip
def test_a_rate_below_all_that_is_used_or_weights_that_grow_are_no_tuning(
    level: float, rate: float, growth: float, severity: Severity
) -> None:
    norm = np.linspace(20.0, 20.0 * growth, 1000)
    loss = flat(level) if level > 1 else level + np.random.default_rng(0).normal(0, 0.005, 1000)
    (finding,) = analyze(view({"loss": loss, "lr": np.full(1000, rate), "param_norm": norm}))
    assert finding.severity is severity
