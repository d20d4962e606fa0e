from __future__ import annotations

import numpy as np
import pytest

from gdiag.measures import levels
from gdiag.measures.ramps import fit_ramp, slopes, trend


def noise(seed: int, rows: int, sigma: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return sigma * np.random.default_rng(seed).standard_normal(rows)


@pytest.mark.parametrize(("first", "last"), [(20, 60), (0, 99), (70, 90)])
def test_a_ramp_is_found_by_its_corners(first: int, last: int) -> None:
    y = 2.0 + 0.5 * np.clip((np.arange(100) - first) / (last - first), 0, 1) + noise(1, 100, 0.01)
    found = fit_ramp(y)
    assert abs(found.first - first) <= 3
    assert abs(found.last - last) <= 3
    assert found.before == pytest.approx(2.0, abs=0.02)
    assert found.after == pytest.approx(2.5, abs=0.02)


def test_a_staircase_of_cuts_on_one_slope_is_a_slope() -> None:
    y = 0.3 * np.arange(60) / 60 + noise(2, 60, 0.01)
    assert slopes(y, [20, 40], 1.0)
    steps = 0.1 * (np.arange(60) // 20) + noise(2, 60, 0.01)
    assert not slopes(steps, [20, 40], 1.0)


def test_wandering_is_no_trend() -> None:
    y = np.cumsum(noise(3, 60, 0.01))
    line = 0.3 * np.arange(60) / 60 + noise(3, 60, 0.01)
    assert trend(line, fit_ramp(line)) > levels.SURE > trend(y, fit_ramp(y))


@pytest.mark.parametrize("rows", [160, 600, 5000])
@pytest.mark.parametrize("sigma", [0.003, 0.02])
def test_a_sparse_log_of_a_drift_shows_a_drift(rows: int, sigma: float) -> None:
    y = np.log1p(0.3) * np.clip((np.arange(rows) / rows - 0.35) / 0.65, 0, None) + noise(4, rows, sigma)
    (change,) = levels.find(np.exp(y)).changes
    assert change.kind == "drift"
    assert abs(change.start - 0.35 * rows) < 0.1 * rows


def test_a_bump_in_a_sparse_log_is_not_taken_for_slow_steps() -> None:
    y = noise(5, 600, 0.01)
    y[200:300] += 0.3
    first = levels.find(np.exp(y)).changes[0]
    assert (first.kind, abs(first.start - 200) <= 2) == ("bump", True)
