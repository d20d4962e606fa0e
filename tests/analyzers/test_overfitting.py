"""GD110: validation leaves training."""

from __future__ import annotations

import numpy as np
import pytest

from gdiag.analyzers.overfitting import analyze
from gdiag.measures.run import RunView
from gdiag.model import Severity
from tests.analyzers.made_runs import Floats, learning, view


def validated(evaluation: Floats, *, train: Floats | None = None) -> RunView:
    """A run of 1000 steps evaluated every 50."""
    column: list[float | None] = [None] * 1000
    for i, value in enumerate(evaluation):
        column[50 * i + 49] = float(value)
    return view({"loss": learning() if train is None else train, "eval_loss": column})


def curve(turn: int, slope: float = 0.04, noise: float = 0.005, seed: int = 0) -> Floats:
    k = np.arange(20)
    clean = 3.0 + np.exp(-k / 3) + slope * np.maximum(0, k - turn)
    return np.asarray(clean + noise * np.random.default_rng(seed).standard_normal(20), dtype=np.float64)


def test_fires_from_the_best_evaluation_on() -> None:
    (finding,) = analyze(validated(curve(8)))
    assert finding.severity is Severity.WARNING
    assert finding.where.step is not None
    assert 349 <= finding.where.step <= 549
    assert finding.where.last_step == 999


@pytest.mark.parametrize("seed", range(5))
def test_quiet_on_a_flat_noisy_tail(seed: int) -> None:
    assert analyze(validated(curve(20, noise=0.05, seed=seed))) == []


def test_quiet_when_training_rises_too() -> None:
    assert analyze(validated(curve(8), train=learning() + 0.01 * np.maximum(0, np.arange(1000) - 400))) == []


def test_quiet_where_training_has_begun_to_rise_with_it() -> None:
    train = learning()
    train[-5:] += 2.0  # too few rows to move its level
    assert analyze(validated(curve(8), train=train)) == []


def test_threshold_is_the_relative_rise() -> None:
    assert analyze(validated(curve(8)), rise=0.5) == []


def test_a_log_of_one_row_an_epoch_is_enough() -> None:
    k = np.arange(12)
    columns = {"loss": 4 * np.exp(-k / 2), "eval_loss": 3.0 + 3.5 * np.exp(-k) + 0.2 * np.maximum(0, k - 2)}
    (finding,) = analyze(view({"step": 500 * k, **columns}))
    lowest = int(np.argmin(columns["eval_loss"]))
    assert finding.where.step == 500 * lowest
    assert f"rises from {columns['eval_loss'][lowest]:.3f} nat" in finding.message


def test_a_rise_that_levels_off_is_told() -> None:
    k = np.arange(20)
    levelled = 3.0 + 2 * np.exp(-2.0 * k) + 0.4 * (1 - np.exp(-np.maximum(0, k - 3) / 1.5))
    noisy = levelled + 0.01 * np.random.default_rng(1).standard_normal(20)
    (finding,) = analyze(validated(noisy))
    assert (finding.number("eval_rise") or 0) > 0.3


def test_a_rise_from_which_validation_has_long_come_down_is_information() -> None:
    late = np.interp(np.arange(20), [0, 2, 7, 19], [3.5, 3.0, 7.0, 4.5])
    (finding,) = analyze(validated(late))
    assert (finding.severity, finding.message.endswith("coming down again since step 399")) == (Severity.INFO, True)
    still_high = np.interp(np.arange(20), [0, 2, 7, 19], [3.5, 3.0, 7.0, 6.9])
    assert [f.severity for f in analyze(validated(still_high))] == [Severity.WARNING]
