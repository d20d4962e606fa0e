"""Slow rises and the lack of progress."""

from __future__ import annotations

import numpy as np
import pytest

from gdiag.measures.changes import blocks, learning, slow_rise
from tests.measures.made import NOISES, Noise, climb, healthy


def nothing(rows: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    return np.zeros(rows, dtype=bool)


def test_blocks_end_with_the_curve() -> None:
    found = blocks(np.arange(1003.0))
    assert found.first_row[-1] + found.rows == 1003
    assert len(found.level) == 50


@pytest.mark.parametrize("noise", NOISES)
def test_healthy_curves_do_not_rise(noise: Noise) -> None:
    assert [seed for seed in range(20) if slow_rise(healthy(1500, noise, seed), nothing(1500))] == []


@pytest.mark.parametrize("noise", ["gauss", "ar", "skew"])
def test_a_slow_rise_has_height_and_onset(noise: Noise) -> None:
    value = healthy(3000, noise, 2, stops=1500) + climb(3000, 1500, 1.0, 1500)
    found = slow_rise(value, nothing(3000))
    assert found is not None
    assert found.height == pytest.approx(1.0, abs=0.2)
    assert found.onset == pytest.approx(1500, abs=300)


def test_masked_rows_do_not_count() -> None:
    value = healthy(1500, "gauss", 2)
    value[1400:] += 3
    assert slow_rise(value, nothing(1500)) is not None
    assert slow_rise(value, np.arange(1500) >= 1400) is None


def test_learning_tells_gain_and_flat_part() -> None:
    found = learning(healthy(2000, "gauss", 1, stops=600))
    assert found is not None
    assert found.gain > 4
    assert found.flat_share == pytest.approx(0.7, abs=0.15)
    assert abs(found.slope) < 0.1
    assert learning(np.ones(59)) is None
