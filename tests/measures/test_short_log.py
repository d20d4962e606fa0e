"""Pasted extracts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gdiag.measures.short_log import short_episodes

PUBLISHED = [2.199, 2.220, 2.595, 2.242, 2.345, 5.098, 3.492, 3.213, 2.805, 2.6, 2.4, 2.3, 2.216]
"""The loss spike of a 176-billion-parameter training as its chronicle prints it (bigscience, tr11-176B-ml)."""


def test_a_published_spike() -> None:
    (found,) = short_episodes(np.array(PUBLISHED))
    assert (found.onset, found.peak) == (5, 5)
    assert found.excess == pytest.approx(2.86, abs=0.05)
    assert found.recovered


def test_a_rise_at_the_end_has_not_recovered() -> None:
    (found,) = short_episodes(np.array([2.77, 2.75, 2.76, 2.77, 2.76, 2.75, 7.34, 8.72]))
    assert found.onset == 6
    assert not found.recovered


@settings(max_examples=30, deadline=None)
@given(st.integers(8, 15), st.integers(0, 10_000), st.floats(0.2, 3))
def test_learning_curves_are_quiet(rows: int, seed: int, speed: float) -> None:
    fall = 2 + 3 * np.exp(-speed * np.arange(rows) / 3)
    assert short_episodes(fall * (1 + 0.03 * np.random.default_rng(seed).normal(size=rows))) == ()


@pytest.mark.parametrize("rows", [0, 1, 7, 16])
def test_only_extracts_are_judged(rows: int) -> None:
    assert short_episodes(np.linspace(1, 100, rows) if rows else np.empty(0)) == ()


def test_noise_of_a_few_rows_is_no_spike() -> None:
    rng = np.random.default_rng(1)
    logs = [500 * np.exp(0.3 * rng.standard_normal(rows)) for rows in (8, 10, 13, 15) for _ in range(250)]
    assert sum(bool(short_episodes(log)) for log in logs) <= 25
