"""ibswinfo: states under the supply that they belong to, switches apart, any cut read."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gdiag.errors import InputError
from gdiag.ingesters import switch_state
from gdiag.ingesters.reading import Input, Options, Reading
from tests.ingesters.switch_screens import screen


def read(text: str) -> Reading:
    data = text.encode()
    shown = Input("switch.txt", data, content=data)
    assert switch_state.recognise(shown) > 0.9
    return switch_state.read(shown, Options())


def test_states_are_of_their_supply() -> None:
    reading = read(screen(supply="ERROR") + screen(guid="0x2"))
    assert reading.facts is not None
    told = {(scope, key): value for scope, key, value in reading.facts.select("scope", "key", "value").iter_rows()}
    assert told["switch 0x1", "PSU1 DC power"] == "ERROR"
    assert told["switch 0x2", "PSU1 DC power"] == "OK"
    assert told["switch 0x1", "fan status"] == "OK"
    assert reading.source.notes[0] == "switch 0x1: Quantum switch, 2 power supplies, 4 fans"


@pytest.mark.parametrize("lost", ["part number", "part number,product name,PSID", "PSID,GUID"])
def test_a_switch_begins_where_a_key_comes_again(lost: str) -> None:
    text = screen(supply="ERROR") + screen(guid="0x2")
    kept = "".join(
        line for line in text.splitlines(keepends=True) if line.partition("|")[0].strip() not in lost.split(",")
    )
    reading = read(kept)
    assert reading.facts is not None
    supplies = reading.facts.filter(reading.facts["key"] == "PSU1 DC power").select("scope", "value").rows()
    names = (1, 2) if "GUID" in lost else ("0x1", "0x2")
    assert supplies == [(f"switch {names[0]}", "ERROR"), (f"switch {names[1]}", "OK")]
    assert len(reading.source.notes) == 2


def test_the_end_of_a_switch_is_not_of_the_next() -> None:
    reading = read(screen(supply="ERROR").partition("PSU0")[2].partition("\n")[2] + screen(guid="0x2"))
    assert reading.facts is not None
    supplies = reading.facts.filter(reading.facts["key"] == "PSU1 DC power").select("scope", "value").rows()
    assert supplies == [("switch 1", "ERROR"), ("switch 0x2", "OK")]


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 900))
def test_any_cut_raises_nothing_else(cut: int) -> None:
    data = screen().encode()[:cut]
    try:
        switch_state.read(Input("x", data, content=data), Options())
    except InputError:
        assert b"|" not in data


def test_nothing_of_it_is_refused() -> None:
    with pytest.raises(InputError, match="ibswinfo"):
        switch_state.read(Input("x", b"====\n", content=b"====\n"), Options())
