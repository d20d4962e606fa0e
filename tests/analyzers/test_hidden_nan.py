"""GD116: NaN losses logged as zeros."""

from __future__ import annotations

import numpy as np

from gdiag.analyzers.hidden_nan import analyze
from gdiag.measures.run import RunView
from gdiag.model import Severity
from tests.analyzers.made_runs import learning, view


def zeroed(rows: int, grad_value: float | None) -> RunView:
    loss, grad = learning(100), np.full(100, 0.5)
    loss[60 : 60 + rows] = 0.0
    if grad_value is None:
        return view({"loss": loss})
    grad[60 : 60 + rows] = grad_value
    return view({"loss": loss, "grad_norm": grad})


def test_critical_with_a_nan_gradient() -> None:
    (finding,) = analyze(zeroed(40, np.nan))
    assert finding.severity is Severity.CRITICAL
    assert (finding.where.step, finding.where.last_step) == (60, 99)


def test_warns_of_zeros_with_a_zero_gradient_or_none_logged() -> None:
    assert [f.severity for f in analyze(zeroed(5, 0.0))] == [Severity.WARNING]
    assert [f.severity for f in analyze(zeroed(5, None))] == [Severity.WARNING]


def test_quiet_where_zero_is_a_possible_loss() -> None:
    assert analyze(view({"loss": np.maximum(0.0, 0.02 - 0.001 * np.arange(60))})) == []
    assert analyze(zeroed(5, 0.4)) == []


def test_zeros_that_a_threshold_excuses_are_told_for_no_other_check_sees_them() -> None:
    run = zeroed(5, 0.0)
    assert len(run.series("loss")) == 95
    for limited in (analyze(run, rows=6), analyze(run, least_before=20.0)):
        assert [f.severity for f in limited] == [Severity.INFO]


def test_quiet_on_a_hinge_whose_batches_are_all_met_here_and_there() -> None:
    loss, grad = learning(2000), np.exp(np.random.default_rng(1).normal(0, 0.4, 2000))
    met = np.random.default_rng(2).choice(np.arange(600, 2000), 30, replace=False)
    loss[met] = grad[met] = 0.0
    assert analyze(view({"loss": loss, "grad_norm": grad})) == []
