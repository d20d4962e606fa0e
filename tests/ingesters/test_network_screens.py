"""Screens that hold no counter are refused by the name of their form."""

from __future__ import annotations

import pytest

from gdiag.errors import InputError
from gdiag.ingesters import network_screens
from gdiag.ingesters.reading import Input, Options


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (b"VM_hostname node5\n0ff08c4321664e96\n", "hosts and port GUIDs"),
    ],
)
def test_known_screens_are_refused_by_name(text: bytes, name: str) -> None:
    given = Input("x.txt", text)
    assert network_screens.recognise(given) > 0
    with pytest.raises(InputError, match=name):
        network_screens.read(given, Options())


def test_nothing_else_is_taken() -> None:
    assert network_screens.recognise(Input("x", b"step loss\n1 2.0\n")) == 0
