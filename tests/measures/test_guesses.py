"""The level of a guess names its number of classes."""

from __future__ import annotations

from math import log

from hypothesis import given
from hypothesis import strategies as st

from gdiag.measures.guesses import CLASSES, classes_guessed


@given(st.sampled_from(CLASSES), st.floats(-0.0049, 0.0049))
def test_a_level_within_half_a_percent_is_a_guess(classes: int, off: float) -> None:
    assert classes_guessed(log(classes) * (1 + off)) == classes


@given(st.sampled_from(CLASSES), st.floats(0.0051, 0.2), st.sampled_from((-1, 1)))
def test_a_level_further_away_is_none(classes: int, off: float, sign: int) -> None:
    assert classes_guessed(log(classes) * (1 + sign * off)) is None
