from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gdiag.model import Cause, Cost, DataWindow, Incident, Measure, Severity
from gdiag.renderers import words


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("train/loss", "train/loss"),
        ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
        ("two\nlines\r\ttab", "two\\nlines\\r\\ttab"),
        ("\u202ereversed", "\\u202ereversed"),
        ("zero\u200bwidth", "zero\\u200bwidth"),
        ("\udcff", "\\udcff"),
        ("\x9b31m", "\\x9b31m"),
        ("Überprüfung µs 学习", "Überprüfung µs 学习"),
        ("[red]markup[/red]", "[red]markup[/red]"),
    ],
)
def test_text_that_steers_or_hides_is_shown_as_text(text: str, safe: str) -> None:
    assert words.shown(text) == safe


@given(st.text())
def test_shown_text_is_one_printable_line(text: str) -> None:
    assert words.shown(text).replace(" ", "").replace("\xa0", "").replace("\u3000", "").isprintable() or any(
        c.isspace() for c in words.shown(text)
    )
    assert not any(ord(c) < 32 or 127 <= ord(c) < 160 for c in words.shown(text))


def test_very_long_text_is_cut_and_says_so() -> None:
    assert words.shown("x" * 5000).endswith("… (5,000 characters)")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3.1000001, "3.1"), (0.2, "0.2"), (1234567, "1,234,567"), (3e-4, "3e-4"), (2.71828, "2.718"), (99.996, "100"),
        (12345.678, "12,346"), (1e30, "1e30"), (-0.0123, "-0.0123"), (0.0, "0"), (math.nan, "NaN"), (-math.inf, "-inf"),
        (True, "yes"), ("blocks.0", "blocks.0"), (None, "–"),
    ],
)  # fmt: skip
def test_figures_have_four_digits(value: float | int | str | bool | None, text: str) -> None:
    assert words.number(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (6.4, "6.4 s"),
        (1234.5, "20 min 34 s"),
        (3 * 3600 + 299.9, "3 h 05 min"),
        (200_000, "2 d 7 h"),
        (math.inf, "inf s"),
    ],
)
def test_durations_are_in_the_units_people_use(seconds: float, text: str) -> None:
    assert words.duration(seconds) == text


@pytest.mark.parametrize(("seconds", "text"), [(0.001845, "1.8 ms"), (0.05, "50 ms"), (0.2, "0.2 s"), (0.0, "0 s")])
def test_durations_below_a_tenth_of_a_second_are_in_milliseconds(seconds: float, text: str) -> None:
    assert words.duration(seconds) == text


def test_a_measure_says_what_it_was_held_against() -> None:
    assert words.quantity(Measure("peak_excess", 3.1, "nat", 0.2)) == "peak excess 3.1 nat (limit 0.2)"


def test_place_time_and_cost_leave_out_what_is_not_known() -> None:
    bare = Incident("t", "plateau", Severity.INFO, "run")
    assert (words.when(bare), words.where(bare), words.cost(bare.cost)) == ("", "", "")
    full = Incident(
        "t",
        "single_spike",
        Severity.INFO,
        "run",
        5,
        5,
        1.7e9,
        1.7e9,
        False,
        "fc",
        3,
        "n1",
        2,
        DataWindow(8, 9),
        Cost(1),
    )
    assert words.when(full) == "step 5 · 2023-11-14 22:13:20"
    assert words.where(full) == "layer fc · rank 3 · n1 GPU 2 · samples 8"
    assert words.cost(full.cost) == "1 step"


def test_json_keeps_its_meaning_and_loses_what_acts_on_a_terminal() -> None:
    name = "a\x9b31m\u202eb\u2066c\x7f\udcff é"
    text = words.quiet_json(json.dumps(name, ensure_ascii=False))
    assert json.loads(text) == name
    assert all(character.isprintable() for character in text)


@pytest.mark.parametrize(
    ("cause", "text"),
    [
        (Cause("bad_batch", 0.98, "high"), "high (0.98)"),
        (Cause("lr_too_high", 0.61, "medium", basis="curve"), "medium (0.61 by the curves alone)"),
        (Cause("bad_batch", 0.75, "low", basis="prior"), "low (0.75 by its usual share; nothing logged confirms it)"),
        (Cause("unknown", 0.4, "low", basis="prior"), "low (0.40; nothing logged points to one cause)"),
    ],
)
def test_a_score_says_what_it_rests_on(cause: Cause, text: str) -> None:
    assert words.confidence(cause) == text
