"""Figures in sentences: three digits, no exponents that nobody reads, nothing infinite."""

from __future__ import annotations

import math

import pytest

from gdiag.reference.figures import distance, filled, listed, multiple, whole


@pytest.mark.parametrize(
    ("ratio", "said"),
    [
        (2.4123, "2.41"), (17.31, "17.3"), (391.7, "392"), (999.6, "1,000"), (12_412.0, "12,400"),
        (3.2e8, "more than a million"), (math.inf, "more than a million"),
    ],
)  # fmt: skip
def test_a_ratio_has_three_digits(ratio: float, said: str) -> None:
    assert multiple(ratio) == said


@pytest.mark.parametrize(
    ("ratio", "said"), [(213.7, "214"), (5.9e9, "more than a million"), (math.inf, "more than a million")]
)
def test_a_multiple_of_the_noise_is_whole(ratio: float, said: str) -> None:
    assert whole(ratio) == said


@pytest.mark.parametrize(
    ("text", "ratio", "said"),
    [
        ("rose {:.0f}-fold", 112.4, "rose 112-fold"),
        ("is {:.1f} times", math.inf, "is more than a million times"),
        ("paused {:,.0f} times", 2_500_000, "paused 2,500,000 times"),
    ],
)
def test_a_sentence_is_filled_with_what_can_be_read(text: str, ratio: float, said: str) -> None:
    assert filled(text, ratio) == said


@pytest.mark.parametrize(("period", "said"), [(1.99, "2"), (127.4, "127.4"), (50_000.0, "50,000")])
def test_a_distance_may_be_a_fraction(period: float, said: str) -> None:
    assert distance(period) == said


@pytest.mark.parametrize(
    ("numbers", "said"),
    [
        ([], ""), ([3], "3"), ([3, 4], "3 and 4"), ([3, 12, 29], "3, 12 and 29"), ([0, 1, 2, 4], "0–2 and 4"),
        ([0, 2, 4, 6, 8, 9, 10], "0, 2, 4, 6 and 3 more"), (list(range(64)), "0–63"),
    ],
)  # fmt: skip
def test_numbers_are_listed_with_neighbours_as_one(numbers: list[int], said: str) -> None:
    assert listed(numbers) == said
