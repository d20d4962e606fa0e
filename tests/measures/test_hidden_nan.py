"""Zeros that stand for NaN, and what every other measure then reads."""

from __future__ import annotations

import numpy as np
import polars as pl

from gdiag.analyzers import dead_metric, loss_not_finite, stale_values, unstable_at_peak_lr
from gdiag.measures.hidden_nan import without_zeros
from tests.analyzers.made_runs import learning, view


def zeroed(since: int) -> dict[str, np.ndarray]:
    """A run whose weights turn NaN at `since` and whose logger writes zeros from then on; the learning rate decays."""
    loss, grad = learning(400), np.exp(np.random.default_rng(1).normal(0, 0.4, 400))
    loss[since:] = grad[since:] = 0.0
    return {"loss": loss, "grad_norm": grad, "lr": 1e-3 * np.linspace(1, 0.05, 400)}


def test_zeros_are_no_level_of_any_other_measure() -> None:
    run = view(zeroed(200))
    assert run.hidden_nan is not None
    assert (int(run.hidden_nan.steps[0]), len(run.hidden_nan.steps)) == (200, 200)
    assert run.series("loss").step[-1] == run.series("grad_norm").step[-1] == 199
    assert run.logged("loss").value[-1] == 0.0
    for analyzer in (unstable_at_peak_lr, stale_values, dead_metric, loss_not_finite):
        assert analyzer.analyze(run) == []


def test_a_run_without_such_zeros_is_read_as_logged() -> None:
    run = view({"loss": learning(400), "grad_norm": np.full(400, 0.5)})
    assert run.hidden_nan is None
    assert run.trajectory.paths[0].frame.height == 400


def test_only_zeros_of_those_steps_and_columns_go() -> None:
    hidden = view(zeroed(397)).hidden_nan
    assert hidden is not None
    frame = pl.DataFrame(
        {"step": [396, 397, 398], "loss": [2.0, 0.0, 0.0], "grad_norm:fc": [0.0, 0.0, 0.1], "lr": [0.0, 0.0, 0.0]}
    )

    left = without_zeros(frame, hidden)

    assert left["loss"].to_list() == [2.0, None, None]
    assert left["grad_norm:fc"].to_list() == [0.0, None, 0.1]
    assert left["lr"].to_list() == [0.0, 0.0, 0.0]
