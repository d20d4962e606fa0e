"""Shares of values within and beyond what a column holds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gdiag.measures.baseline import Floats
from gdiag.measures.rarity import Column

NOTHING: Floats = np.empty(0)


def test_within_the_column_shares_are_counted() -> None:
    held = Column.of(np.arange(100.0))
    assert held.rarity(np.array([90.0, 0.0])) == pytest.approx([np.log(10), 0.0])
    assert held.beyond(80.5, NOTHING) == pytest.approx(np.log(101 / 20))
    assert held.beyond(80.5, np.array([99.0, 98.0])) == pytest.approx(np.log(99 / 18))


def test_beyond_the_column_heavy_tails_promise_more() -> None:
    rng = np.random.default_rng(0)
    light, heavy = Column.of(rng.normal(size=2000)), Column.of(rng.standard_t(3, 2000))
    assert light.beyond(12.0, NOTHING) > heavy.beyond(12.0, NOTHING) + 4
    # Student's t with three degrees of freedom reaches 25 in a share of 7e-5: 9.6.
    assert heavy.beyond(25.0, NOTHING) == pytest.approx(9.6, abs=2.0)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 1000), st.integers(12, 400))
def test_what_is_farther_is_rarer(seed: int, rows: int) -> None:
    held = Column.of(np.random.default_rng(seed).standard_t(3, rows))
    rarity = [held.beyond(value, held.held[-2:]) for value in np.linspace(0.0, 40.0, 60).tolist()]
    assert np.all(np.diff(rarity) >= -1e-9)


def test_a_rarity_is_worth_less_where_the_others_thin_out_slowly() -> None:
    free = -np.log(np.random.default_rng(1).random(2000))
    assert Column.of(free).thinned(14.0, NOTHING) == pytest.approx(14.0, abs=1.5)
    assert Column.of(3 * free).thinned(14.0, NOTHING) < 9.0
    assert Column.of(free).thinned(2.0, NOTHING) == pytest.approx(2.0, abs=0.2)
