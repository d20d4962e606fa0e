"""Stretches of NaN and infinity."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gdiag.measures.nonfinite import NonFinite
from tests.analyzers.made_runs import learning, view


def stretches(**columns: np.ndarray[tuple[int], np.dtype[np.float64]]) -> tuple[NonFinite, ...]:
    return view(columns).nonfinite


def test_columns_are_ordered_by_first_appearance() -> None:
    loss, grad = learning(), np.ones(1000)
    grad[500:] = math.inf
    loss[502:] = math.nan
    (found,) = stretches(loss=loss, grad_norm=grad)
    assert found.columns == (("grad_norm", 500), ("loss", 502))
    assert (found.onset, found.last, found.dead, found.infinite) == (500, 999, True, True)


def test_a_gap_splits_stretches() -> None:
    loss = learning()
    loss[[300, 301, 700]] = math.nan
    assert [(s.onset, s.last, s.rows, s.dead) for s in stretches(loss=loss)] == [
        (300, 301, 2, False),
        (700, 700, 1, False),
    ]


def test_three_in_a_row_are_dead_even_if_values_return() -> None:
    loss = learning()
    loss[300:310] = math.nan
    assert stretches(loss=loss)[0].dead


def test_one_infinite_gradient_with_a_finite_loss_is_a_skip() -> None:
    grad = np.ones(1000)
    grad[400] = math.inf
    (found,) = stretches(loss=learning(), grad_norm=grad)
    assert found.skipped


@pytest.mark.parametrize("rows", [0, 5, 1000])
def test_finite_logs_have_none(rows: int) -> None:
    assert stretches(loss=learning(max(rows, 1))) == ()


def test_the_scaler_that_searches_its_range_from_the_first_row_skips() -> None:
    grad, scale = np.ones(1000), np.full(1000, 8192.0)
    grad[:5] = math.inf
    scale[:5] = [65536, 65536, 32768, 16384, 16384]
    (found,) = stretches(loss=learning(), grad_norm=grad, loss_scale=scale)
    assert found.skipped
