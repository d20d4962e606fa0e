from __future__ import annotations

import pytest

from gdiag.errors import InputError
from gdiag.ingesters import network_screens
from gdiag.ingesters.reading import Input, Options


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (b"\tIdentifier                                : 0x03 (SFP)\n", "ethtool -m"),
        (b"     rx_prio0_bytes: 88178050405854\n", "ethtool -S"),
        (b"/sys/class/infiniband/mlx5_0/ports/1/hw_counters/lifespan:12\n", "RoCE hardware counters"),
        (b"    Port Tx    PFC0    PFC1    PFC2\n", "SONiC"),
    ],
)
def test_known_screens_are_refused_by_name(text: bytes, name: str) -> None:
    given = Input("x.txt", text)
    assert network_screens.recognise(given) > 0
    with pytest.raises(InputError, match=name):
        network_screens.read(given, Options())


def test_nothing_else_is_taken() -> None:
    assert network_screens.recognise(Input("x", b"step loss\n1 2.0\n")) == 0
