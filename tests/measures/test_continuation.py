"""What goes on as before after a move of the loss, and what does not."""

from __future__ import annotations

import numpy as np
import pytest

from gdiag.measures.continuation import Continuation, continuation
from tests.analyzers.made_runs import view

AT, ROWS = 300, 600


def moved(
    *, noise: float = 1.0, climb: float = 0.0, level: float = 1.0, rough: float = 1.0, rows: int = ROWS
) -> Continuation | None:
    """A loss that moves from 2 to 3 nat; everything after it over what was before."""
    rng = np.random.default_rng(5)
    after = np.arange(rows) >= AT
    loss = 2 + after * 1.0 + climb * np.maximum(0, np.arange(rows) - AT) / ROWS
    loss += rng.normal(0, 0.02, rows) * np.where(after, noise, 1.0)
    grad = np.exp(rng.normal(0, 0.1, rows) * np.where(after, rough, 1.0)) * np.where(after, level, 1.0)
    run = view({"loss": loss, "grad_norm": grad})
    return continuation(run.series("loss"), run.series("grad_norm"), AT, 2.0)


def test_a_level_that_is_new_and_nothing_else() -> None:
    seen = moved()
    assert seen is not None
    assert (seen.noise_ratio, seen.kept, seen.grad_level, seen.grad_roughness) == pytest.approx((1, 1, 1, 1), abs=0.35)


def test_noise_a_climb_and_gradients_that_change() -> None:
    seen = moved(noise=20, climb=4, level=0.3, rough=3)
    assert seen is not None
    assert seen.noise_ratio > 10
    assert seen.kept > 1.5
    assert seen.grad_level == pytest.approx(0.3, rel=0.2)
    assert seen.grad_roughness == pytest.approx(3, rel=0.35)


def test_few_rows_after_a_move_say_nothing_of_gradients_and_fewer_nothing_at_all() -> None:
    seen = moved(rows=AT + 15)
    assert seen is not None
    assert (seen.grad_level is None, seen.grad_roughness) == (False, None)
    assert moved(rows=AT + 9) is None


def test_the_units_of_loss_and_gradient_do_not_matter() -> None:
    rng = np.random.default_rng(1)
    loss = 2.0 + (np.arange(ROWS) >= AT) + rng.normal(0, 0.02, ROWS)
    grad = np.exp(rng.normal(0, 0.1, ROWS))
    found = []
    for unit in (1.0, 0.01, 100.0):
        run = view({"loss": unit * loss, "grad_norm": unit * grad})
        found.append(continuation(run.series("loss"), run.series("grad_norm"), AT, unit * 2.0))
    for other in found[1:]:
        assert other is not None
        assert found[0] is not None
        assert (other.noise_ratio, other.kept, other.grad_roughness) == pytest.approx(
            (found[0].noise_ratio, found[0].kept, found[0].grad_roughness)
        )
