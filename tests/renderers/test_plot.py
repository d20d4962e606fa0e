from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gdiag.model import Incident, Report, Series, Severity
from gdiag.renderers.plot import draw, subject, sweep, window


def series(values: list[float], name: str = "loss", layer: str | None = None) -> Series:
    x = tuple(float(i) for i in range(len(values)))
    return Series(name, "nat", "run", x, tuple(values), tuple(values), layer=layer)


def test_a_spike_stands_out_and_its_onset_is_marked() -> None:
    plot = draw(series([1.0] * 30 + [5.0] + [1.0] * 29), 30, 30, width=64, height=4)
    assert plot is not None
    assert sum(c != "\u2800" for c in plot.rows[0]) <= 2
    assert plot.labels == ("5", " ", " ", "1")
    assert plot.marks.strip() == "▲"
    first = next(k for k, c in enumerate(plot.rows[0]) if c != "\u2800")
    assert first <= plot.marks.index("▲") <= first + 1
    assert plot.axis.split() == ["0", "30", "59"]


def test_values_that_are_not_finite_are_marked() -> None:
    plot = draw(series([1.0, 1.1] * 20 + [math.nan] * 10), 10, None, width=60, height=3)
    assert plot is not None
    assert plot.marks.endswith("×")
    assert "▲" in plot.marks


def test_a_wide_range_gets_a_logarithmic_axis_and_says_so() -> None:
    plot = draw(series([1.0] * 30 + [1e4] * 30), 30, None, width=60, height=4)
    assert plot is not None
    assert plot.title == "loss [nat], logarithmic"


def test_nothing_finite_draws_nothing() -> None:
    assert draw(series([math.nan] * 5), 2, None, width=60, height=3) is None
    assert draw(series([]), 2, None, width=60, height=3) is None


def test_a_long_incident_is_shown_with_as_much_before_and_after() -> None:
    assert window(series([1.0] * 5000), 1000, 2000) == (0.0, 3000.0)


def test_the_layer_of_the_incident_goes_before_the_whole_network() -> None:
    both = series([1.0], "grad_norm"), series([1.0], "grad_norm", "fc")
    spike = Incident("s", "layer_outlier", Severity.WARNING, "run", 0)
    assert shown_of(both, replace(spike, layer="fc")) is both[1]
    assert shown_of(both, replace(spike, layer="other")) is both[0]
    assert shown_of(both, replace(spike, pattern="straggler")) is None
    assert shown_of(both, replace(spike, onset_step=None)) is None


def test_a_gpu_without_a_step_is_shown_over_time_of_day() -> None:
    clock = replace(series([1980.0, 1400.0], "clock_sm"), gpu=2, host="a")
    hot = Incident("s", "thermal_slowdown", Severity.WARNING, "run", onset_time=1.0, gpu=2, host="a")
    found = subject(Report(series=(clock,)), hot)
    assert found is not None
    assert (found.series, found.label(1.0)) == (clock, "00:00:01")


def shown_of(held: tuple[Series, ...], incident: Incident) -> Series | None:
    found = subject(Report(series=held), incident)
    return None if found is None else found.series


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.floats(allow_nan=True, allow_infinity=True), max_size=60),
    st.integers(-5, 70),
    st.integers(9, 80),
    st.integers(2, 8),
)
def test_any_series_is_drawn_inside_its_frame(values: list[float], onset: int, width: int, height: int) -> None:
    plot = draw(series(values), onset, onset + 3, width=width, height=height)
    if plot is not None:
        assert len(plot.rows) == len(plot.labels) in (1, height)
        assert len({len(row) for row in plot.rows}) == 1
        assert len(plot.marks) <= len(plot.rows[0])


def test_the_frame_is_as_wide_as_asked() -> None:
    plot = draw(series([1.0, 2.0] * 20), 10, None, width=40, height=3)
    assert plot is not None
    assert {len(label) + 1 + len(row) for label, row in zip(plot.labels, plot.rows, strict=True)} == {40}
    with pytest.raises(AttributeError):
        plot.title = ""  # type: ignore[misc]


def test_a_first_step_far_above_all_others_does_not_flatten_the_plot() -> None:
    plot = draw(series([1.0] * 5 + [50.0] + [1.0] * 94 + [1.5] * 100), 100, 199, width=100, height=4)
    assert plot is not None
    assert plot.title.endswith("cut at the top")
    assert plot.labels[0].strip() == "1.5"


def test_the_incident_itself_is_never_cut() -> None:
    plot = draw(series([1.0] * 100 + [50.0] + [1.0] * 99), 100, 100, width=100, height=4)
    assert plot is not None
    assert plot.labels[0].strip() == "50"


def test_a_sweep_of_no_bandwidth_draws_nothing() -> None:
    sizes = tuple(float(2**k) for k in range(10, 20))
    nothing = Series("busbw", "GB/s", "run", sizes, (0.0,) * 10, (0.0,) * 10)
    assert sweep(nothing, None, width=60, height=6) is None
