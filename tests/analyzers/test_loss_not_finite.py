"""GD101: where non-finite values begin, and whether the run goes on."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gdiag.analyzers.loss_not_finite import analyze
from gdiag.model import Severity
from tests.analyzers.made_runs import Floats, learning, view


def gradient(rows: int = 1000, seed: int = 1) -> Floats:
    return np.exp(np.random.default_rng(seed).normal(0, 0.1, rows))


def test_a_dead_run_is_dated_to_the_first_column() -> None:
    loss, grad = learning(), gradient()
    grad[700:] = math.nan
    loss[701:] = math.nan
    (finding,) = analyze(view({"loss": loss, "grad_norm": grad}))
    assert finding.severity is Severity.CRITICAL
    assert (finding.where.step, finding.where.last_step, finding.where.line) == (700, 999, 701)
    assert finding.measure("gradient_first") is True
    assert finding.measure("order") == "grad_norm 700, loss 701"
    assert finding.measure("without_run_up") is True
    assert finding.number("steps_lost") == 300


def test_a_run_up_of_the_gradient_is_evidence() -> None:
    loss, grad = learning(), gradient()
    grad[690:700] *= 40
    loss[700:] = math.nan
    (finding,) = analyze(view({"loss": loss, "grad_norm": grad}))
    assert finding.number("grad_ratio") == pytest.approx(40, rel=0.4)
    assert finding.measure("without_run_up") is False
    assert analyze(view({"loss": loss, "grad_norm": grad}), explosion=100)[0].measure("without_run_up") is True


def test_single_values_are_one_warning() -> None:
    loss = learning()
    loss[[300, 500, 800]] = math.inf
    (finding,) = analyze(view({"loss": loss}))
    assert finding.severity is Severity.WARNING
    assert finding.measure("isolated") is True
    assert (finding.where.step, finding.where.last_step) == (300, 800)


def test_nan_in_the_last_row_is_dead() -> None:
    loss = learning()
    loss[-1] = math.nan
    assert analyze(view({"loss": loss}))[0].severity is Severity.CRITICAL


@pytest.mark.parametrize("said_by", ["skipped", "loss_scale"])
def test_quiet_on_fp16_back_off(said_by: str) -> None:
    grad = gradient()
    grad[[400, 401, 402]] = math.inf
    column = np.zeros(1000) if said_by == "skipped" else np.full(1000, 65536.0)
    if said_by == "skipped":
        column[400:403] = 1
    else:
        column[401:] /= 2
    assert analyze(view({"loss": learning(), "grad_norm": grad, said_by: column})) == []


def test_quiet_where_nan_stands_for_not_logged() -> None:
    loss = learning()
    loss[np.arange(1000) % 10 != 0] = math.nan
    assert analyze(view({"loss": loss})) == []


def test_a_single_rank_is_named() -> None:
    step = np.repeat(np.arange(400), 4)
    rank = np.tile(np.arange(4), 400)
    loss = np.repeat(learning(400), 4)
    loss[(step >= 250) & (rank == 2)] = math.nan
    (finding,) = analyze(view({"step": step, "rank": rank, "loss": loss}))
    assert (finding.where.step, finding.where.rank) == (250, 2)


def test_a_rise_in_a_run_too_young_for_a_level_is_a_run_up() -> None:
    grad = np.array([4.0, 3.0, 3.2, 2.9, 3.1, 3.0, 70.0, 9.0, 30.0, 900.0, 1e9, math.nan, math.nan, math.nan])
    loss = np.where(np.isnan(grad), math.nan, 8.0)
    (finding,) = analyze(view({"loss": loss, "grad_norm": grad}))
    assert finding.measure("without_run_up") is False
    assert (finding.number("grad_ratio") or 0) > 1e6


def test_two_rows_that_blow_up_are_a_run_up() -> None:
    rising = view(
        {"loss": [1.8e3, 7.3e4, 1.8e11] + [math.nan] * 12, "grad_norm": [1.3e4, 2.5e5, 4.6e11] + [math.nan] * 12}
    )
    (finding,) = analyze(rising)
    assert finding.measure("without_run_up") is False
    falling = view({"loss": [4.0, 3.0, 2.0] + [math.nan] * 12, "grad_norm": [9.0, 3.0, 2.0] + [math.nan] * 12})
    (finding,) = analyze(falling)
    assert finding.measure("without_run_up") is True


def test_a_loss_that_blows_up_in_its_first_rows_is_a_run_up_without_a_norm() -> None:
    (finding,) = analyze(view({"loss": [1.8e3, 7.3e4, 1.8e11] + [math.nan] * 12}))
    assert (finding.measure("without_run_up"), (finding.number("loss_ratio") or 0) > 1e7) == (False, True)
    (finding,) = analyze(view({"loss": [4.0, 3.0, 2.0] + [math.nan] * 12}))
    assert finding.measure("without_run_up") is True


@pytest.mark.parametrize(("gap", "onset"), [(9, 609), (200, 636)])
def test_single_gradients_close_before_belong_to_what_follows(gap: int, onset: int) -> None:
    grad = gradient()
    grad[[636 - 3 * gap, 636 - 2 * gap, 636 - gap, 636, 638, 700, 702]] = math.inf
    (finding,) = analyze(view({"loss": learning(), "grad_norm": grad}))
    assert finding.where.step == onset
