"""The level of a guess names its number of classes."""

from __future__ import annotations

from math import log

from hypothesis import example, given
from hypothesis import strategies as st

from gdiag.measures.guesses import CLASSES, classes_guessed, classes_guessed_with


@given(st.sampled_from(CLASSES), st.floats(-0.0049, 0.0049))
def test_a_level_within_half_a_percent_is_a_guess(classes: int, off: float) -> None:
    assert classes_guessed(log(classes) * (1 + off)) == classes


@example(1619, -0.013671875, -0.28125)
@given(st.integers(2, 5000), st.floats(-0.015, 0.015), st.floats(-0.3, 0.3))
def test_loss_and_accuracy_together_name_any_number_of_classes(classes: int, off: float, more: float) -> None:
    found = classes_guessed_with(log(classes) * (1 + off), (1 + more) / classes)
    assert found is not None
    assert abs(log(found) - log(classes)) <= 0.05 * log(classes)


@given(st.integers(2, 5000), st.sampled_from((0.2, 0.5, 2.2, 5.0)))
def test_an_accuracy_that_is_not_that_of_the_level_is_no_guess(classes: int, times: float) -> None:
    assert classes_guessed_with(log(classes), times / classes) is None


@given(st.sampled_from(CLASSES), st.floats(0.0051, 0.2), st.sampled_from((-1, 1)))
def test_a_level_further_away_is_none(classes: int, off: float, sign: int) -> None:
    assert classes_guessed(log(classes) * (1 + sign * off)) is None


def test_an_accuracy_of_next_to_nothing_is_no_guess() -> None:
    assert classes_guessed_with(2.3, 1e-310) is None
