from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gdiag.model import Series
from gdiag.reference.sizes import size_text
from gdiag.renderers.chart import Band, Frame, draw


def series(values: list[float], x: list[float] | None = None) -> Series:
    steps = tuple(x if x is not None else [float(i) for i in range(len(values))])
    return Series("loss", "nat", "run", steps, tuple(values), tuple(values))


def elements(svg: str | None, kind: str) -> list[ET.Element]:
    assert svg is not None
    return [e for e in ET.fromstring(svg).iter() if e.get("class", "").split()[:1] == [kind]]


def test_nothing_finite_draws_nothing() -> None:
    assert draw(series([math.nan, math.inf])) is None
    assert draw(series([])) is None


def test_an_incident_is_shaded_where_it_lies_and_not_where_it_is_not() -> None:
    curve = series([3.0] * 50 + [5.0] * 50)
    (band,) = elements(draw(curve, bands=[Band(50, 99, "critical")]), "band")
    assert band.get("class") == "band critical"
    assert float(band.get("width", "0")) == pytest.approx(0.5 * (640 - 56 - 12), rel=0.03)
    assert elements(draw(curve, bands=[Band(500, 600, "critical")]), "band") == []


def test_points_that_are_not_finite_break_the_line_and_are_marked() -> None:
    svg = draw(series([1.0, 2.0, math.nan, 2.0, 1.0]))
    assert len(elements(svg, "line")) == 2
    assert len(elements(svg, "cross")) == 1


def test_very_many_of_them_are_one_bar() -> None:
    svg = draw(series([1.0, 2.0] + [math.nan] * 500))
    assert elements(svg, "cross") == []
    assert len(elements(svg, "lost")) == 1


def test_a_hole_in_the_steps_breaks_the_line() -> None:
    steps = [float(i) for i in range(50)] + [float(i) for i in range(500, 550)]
    assert len(elements(draw(series([1.0, 2.0] * 50, steps)), "line")) == 2


def test_an_envelope_with_a_height_is_filled() -> None:
    assert elements(draw(series([1.0, 2.0])), "envelope") == []
    assert len(elements(draw(replace(series([1.0, 2.0]), high=(1.5, 2.5))), "envelope")) == 1


def test_a_ceiling_cuts_and_says_so() -> None:
    svg = draw(series([2.0, 3.0, 90.0]), Frame(ceiling=4.0))
    (name,) = elements(svg, "name")
    assert name.text == "loss [nat], cut at the top"


def test_message_sizes_get_round_ticks_and_the_limit_a_line() -> None:
    sizes = [8.0 * 2**n for n in range(28)]
    svg = draw(series([float(n) for n in range(28)], sizes), Frame(label=size_text, log_x=True, held=30.0))
    assert len(elements(svg, "limit")) == 1
    assert len(elements(svg, "line")) == 1
    assert "1 MiB" in {e.text for e in elements(svg, "tick")}


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.floats(allow_nan=True, allow_infinity=True), max_size=50),
    st.floats(-10, 60),
    st.floats(0, 60),
)
def test_every_coordinate_lies_inside_the_frame(values: list[float], first: float, length: float) -> None:
    svg = draw(series(values), bands=[Band(first, first + length, "info")])
    if svg is None:
        assert not any(map(math.isfinite, values))
        return
    for line in elements(svg, "line"):
        for point in line.get("points", "").split():
            x, y = map(float, point.split(","))
            assert 0 <= x <= 640
            assert 0 <= y <= 170
