from __future__ import annotations

import numpy as np
import pytest

from gdiag.tables.parting import first_difference, first_lasting_difference

N = 2000


def noisy(seed: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return 3.0 + 0.05 * np.random.default_rng(seed).standard_normal(N)


def test_the_first_digit_that_differs_is_found_and_rounding_is_not() -> None:
    x = noisy(1)
    y = x * (1 + 1e-9)
    assert first_difference(x, y) is None
    y[700:] += 0.001
    assert first_difference(x, y) == 700


@pytest.mark.parametrize("seed", range(5))
def test_two_seeds_of_one_curve_do_not_part_beyond_noise(seed: int) -> None:
    assert first_lasting_difference(noisy(seed), noisy(seed + 100)) is None


@pytest.mark.parametrize("sign", [-1, 1])
def test_a_lasting_step_is_found_within_a_block(sign: int) -> None:
    x, y = noisy(1), noisy(2)
    y[1000:] += sign * 0.2
    at = first_lasting_difference(x, y)
    assert at is not None
    assert abs(at - 1000) <= 40


def test_a_difference_that_goes_away_is_not_lasting() -> None:
    x, y = noisy(1), noisy(2)
    y[1000:1200] += 0.5
    assert first_lasting_difference(x, y) is None


@pytest.mark.parametrize("rows", [0, 1, 5, 39])
def test_few_rows_part_by_digits_only(rows: int) -> None:
    x = np.ones(rows)
    assert first_lasting_difference(x, x + 1) is None


@pytest.mark.parametrize("at", [1000, 1015, 1039])
def test_a_lasting_step_is_not_dated_before_it(at: int) -> None:
    x = noisy(1)
    y = x.copy()
    y[at:] += 0.3
    assert first_lasting_difference(x, y) == at
