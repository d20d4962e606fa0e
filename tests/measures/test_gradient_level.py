from __future__ import annotations

import numpy as np
import pytest

from tests.analyzers.made_runs import Floats, view


def run(rows: int, every: int, stuck: int, *, high: float, seed: int = 0) -> dict[str, Floats]:
    """A run whose loss stands still and whose gradient is `high` times its first value for `stuck` rows after the first."""
    rng = np.random.default_rng(seed)
    done = np.clip(np.arange(rows) - stuck, 0, None) / rows
    loss = 3.0 + 7.8 * np.exp(-12 * done) + 0.05 * rng.standard_normal(rows)
    grad = np.where(np.arange(rows) <= stuck, high, 0.4) * np.exp(0.1 * rng.standard_normal(rows))
    grad[0] = 1.0
    return {"step": np.arange(rows) * every, "loss": loss, "grad_norm": grad, "lr": np.full(rows, 3e-4)}


@pytest.mark.parametrize(("rows", "every", "stuck"), [(160, 50, 9), (400, 10, 22), (2000, 1, 300), (160, 50, 160)])
def test_a_surge_lasts_as_long_as_the_loss_stands_still(rows: int, every: int, stuck: int) -> None:
    found = view(run(rows, every, stuck, high=40.0)).gradient_surge
    assert found is not None
    assert found.step == every
    assert abs(found.last_step - min(stuck, rows - 1) * every) <= 0.04 * rows * every
    assert found.grad_ratio == pytest.approx(40.0, rel=0.2)
    assert found.recovered is (stuck < rows)


def test_neither_a_loss_that_falls_nor_a_gradient_at_its_level_is_a_surge() -> None:
    assert view(run(400, 10, 0, high=40.0)).gradient_surge is None
    assert view(run(400, 10, 60, high=1.5)).gradient_surge is None


def test_a_few_rows_are_no_surge() -> None:
    assert view(run(400, 10, 4, high=40.0)).gradient_surge is None


def test_gradients_that_grow_as_a_small_initialisation_is_left_are_no_surge() -> None:
    made = run(1600, 1, 60, high=8.0)
    made["grad_norm"][61:] = 7.0 * np.exp(-np.arange(1539) / 500)
    assert view(made).gradient_surge is None
    made["loss"][10:61] += 2.0
    assert view(made).gradient_surge is not None
