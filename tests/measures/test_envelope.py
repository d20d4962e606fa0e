from __future__ import annotations

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from gdiag.measures.envelope import envelope, plotted
from tests.analyzers.made_layers import layered, norms


def curve(values: list[float]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    return np.arange(len(values), dtype=np.float64), np.array(values)


def test_a_short_curve_stays_as_it_is() -> None:
    x, y = curve([3.0, math.nan, 2.0])
    steps, low, high = envelope(x, y)
    assert steps.tolist() == [0.0, 1.0, 2.0]
    np.testing.assert_array_equal(low, y)
    np.testing.assert_array_equal(high, y)


def test_an_empty_curve_gives_no_points() -> None:
    x, y = curve([])
    assert [len(part) for part in envelope(x, y)] == [0, 0, 0]


def test_a_single_spike_and_a_single_nan_survive_decimation() -> None:
    x, y = np.arange(100_000.0), np.full(100_000, 2.0)
    y[54_321], y[70_007] = 9.0, math.nan
    steps, low, high = envelope(x, y)
    assert len(steps) < 1100
    assert high[np.isfinite(high)].max() == 9.0
    assert steps[~np.isfinite(low)].tolist() == [70_007.0]


def test_rows_around_an_incident_are_exact() -> None:
    x = np.arange(100_000.0)
    y = np.sin(x)
    steps, low, high = envelope(x, y, [(5_000, 5_003)], around=50)
    inside = (steps >= 4_950) & (steps < 5_050)
    assert steps[inside].tolist() == x[4_950:5_050].tolist()
    np.testing.assert_array_equal(low[inside], y[4_950:5_050])
    np.testing.assert_array_equal(low[inside], high[inside])


def test_many_incidents_do_not_make_the_plot_as_large_as_the_log() -> None:
    x = np.arange(100_000.0)
    steps, _, _ = envelope(x, x, [(k, k) for k in range(0, 100_000, 100)], most=2000)
    assert len(steps) < 4_000


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.floats(allow_nan=True, allow_infinity=True, width=32), min_size=1, max_size=300),
    st.integers(1, 40),
)
def test_the_envelope_keeps_the_extremes_and_the_order(values: list[float], points: int) -> None:
    x, y = curve(values)
    steps, low, high = envelope(x, y, points=points)
    assert (np.diff(steps) >= 0).all()
    finite = y[np.isfinite(y)]
    if len(finite):
        assert low[np.isfinite(low)].min() == finite.min()
        assert high[np.isfinite(high)].max() == finite.max()
    assert bool((~np.isfinite(y)).any()) == bool((~np.isfinite(low)).any())


def test_the_layer_of_an_incident_is_drawn_with_gradients_and_parameters() -> None:
    made = norms(100, 2)
    run = layered(made, params={name: 3 + 0 * norm for name, norm in made.items()}, steps={"loss": np.ones(100)})
    drawn = plotted(run, [(10, 20)], ["blocks.1.qkv"])
    assert [(series.name, series.layer) for series in drawn] == [
        ("loss", None), ("grad_norm", "blocks.1.qkv"), ("param_norm", "blocks.1.qkv"),
    ]  # fmt: skip
