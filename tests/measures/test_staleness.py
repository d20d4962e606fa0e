"""Equal values in a row."""

from __future__ import annotations

import numpy as np

from gdiag.measures.staleness import flats, longest_flat, stale
from tests.analyzers.made_runs import learning, view


def test_flats_and_the_longest() -> None:
    loss = learning(100)
    loss[20:30] = 1.0
    loss[50:53] = 2.0
    curve = view({"loss": loss}).series("loss")
    assert [(f.first, f.last, f.value, f.rows) for f in flats(curve, 3)] == [(20, 29, 1.0, 10), (50, 52, 2.0, 3)]
    longest = longest_flat(curve)
    assert longest is not None
    assert longest.rows == 10
    assert [f.first for f in stale(curve, 5)] == [20]


def test_rounded_and_constant_columns_are_not_stale() -> None:
    assert stale(view({"loss": np.round(learning(), 1)}).series("loss"), 5) == []
    assert stale(view({"loss": np.ones(1000)}).series("loss"), 5) == []
    assert longest_flat(view({"loss": learning()}).series("lr")) is None
