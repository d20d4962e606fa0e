"""GD119: validation leaves its level while training does not."""

from __future__ import annotations

import numpy as np
import pytest

from gdiag.analyzers import overfitting
from gdiag.analyzers.eval_jump import analyze
from gdiag.measures.run import RunView
from gdiag.model import Severity
from tests.analyzers.made_runs import Floats, learning, view

EVALS = 24


def validated(up: slice, height: float = 2.0, *, noise: float = 0.02, seed: int = 0, harmed: bool = False) -> RunView:
    """A run of 1,200 steps evaluated every 50, with evaluations raised by `height`; `harmed`: training is raised as well."""
    rng = np.random.default_rng(seed)
    train = learning(1200, seed=seed)
    level = train[49::50] + 0.1 + noise * rng.standard_normal(EVALS)
    level[up] += height
    if harmed:
        train[50 * up.start : 50 * (up.stop or EVALS)] += height
    column: list[float | None] = [None] * 1200
    for i, value in enumerate(level):
        column[50 * i + 49] = float(value)
    return view({"loss": train, "eval_loss": column})


@pytest.mark.parametrize(("up", "last"), [(slice(12, 15), 749), (slice(12, None), 1199)])
def test_fires_where_validation_alone_moves(up: slice, last: int) -> None:
    (finding,) = analyze(validated(up))
    assert finding.severity is Severity.WARNING
    assert (finding.where.step, finding.where.last_step) == (649, last)
    assert finding.measure("recovered") is (last < 1199)


def test_one_evaluation_must_stand_out_further() -> None:
    assert len(analyze(validated(slice(12, 13)))) == 1
    assert analyze(validated(slice(12, 13), 0.12 * 3)) == []


@pytest.mark.parametrize("seed", range(5))
def test_quiet_on_healthy_and_on_harmed_runs(seed: int) -> None:
    assert analyze(validated(slice(0, 0), seed=seed)) == []
    assert analyze(validated(slice(0, 0), noise=0.3, seed=seed)) == []
    assert analyze(validated(slice(12, 15), harmed=True, seed=seed)) == []


def test_a_rise_that_goes_on_is_overfitting() -> None:
    k = np.arange(EVALS)
    rising: Floats = 1.5 * np.maximum(0, k - 14)
    column: list[float | None] = [None] * 1200
    for i, value in enumerate(learning(1200)[49::50] + rising):
        column[50 * i + 49] = float(value)
    run = view({"loss": learning(1200), "eval_loss": column})
    assert (len(analyze(run)), len(overfitting.analyze(run))) == (0, 1)


def test_threshold_is_the_height() -> None:
    assert analyze(validated(slice(12, 15)), z=1000.0) == []
    small = validated(slice(12, 15), 0.6, noise=0.1)
    assert (len(analyze(small)), len(analyze(small, z=3.0))) == (0, 1)


def test_quiet_where_an_epoch_of_samples_learned_by_heart_begins() -> None:
    rng = np.random.default_rng(0)
    epoch = np.arange(1800) // 600
    train = np.array([1.4, 1.1, 0.7])[epoch] + 0.05 * rng.standard_normal(1800)
    column: list[float | None] = [None] * 1800
    for row in range(99, 1800, 100):
        column[row] = float(np.array([1.3, 1.25, 1.5])[epoch[row]] + 0.01 * rng.standard_normal())
    assert analyze(view({"loss": train, "eval_loss": column})) == []
    level = np.array([1.4, 1.1, 1.1])[epoch] + 0.05 * rng.standard_normal(1800)
    assert len(analyze(view({"loss": level, "eval_loss": column}))) == 1
