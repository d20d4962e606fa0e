"""ibnetdiscover in both forms: links, kinds of nodes, cables by LID and GUID."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gdiag.errors import InputError
from gdiag.ingesters import fabric_topology
from gdiag.ingesters.reading import Input, Options, Reading

LINES = """\
CA    11  1 0x0002c90300a00001 4x HDR - SW     5  1 0x0002c90300b00005 ( 'node1 mlx5_0' - 'leaf-1' )
SW     5  1 0x0002c90300b00005 4x HDR - CA    11  1 0x0002c90300a00001 ( 'leaf-1' - 'node1 mlx5_0' )
SW     5 31 0x0002c90300b00005 2x HDR - SW     6  1 0x0002c90300b00006 ( 'leaf-1' - 'spine-1' )
SW     5 32 0x0002c90300b00005 4x ???                                    'leaf-1'
SW     5 33 0x0002c90300b00005 4x SDR                                    'leaf-1'
"""
FULL = """\
# Topology file: generated
vendid=0x2c9
devid=0xd2f0
sysimgguid=0x2c90300b00005
switchguid=0x2c90300b00005(2c90300b00005)
Switch\t41 "S-0002c90300b00005"\t\t# "MF0;leaf-1:MQM8700/U1" enhanced port 0 lid 5 lmc 0
[1]\t"H-0002c90300a00001"[1](2c90300a00001) \t\t# "node1 mlx5_0" lid 11 4xHDR
[31]\t"S-0002c90300b00006"[1]\t\t# "MF0;spine-1:MQM8700/U1" lid 6 2xHDR

vendid=0x2c9
devid=0x101b
sysimgguid=0x2c90300a00001
caguid=0x2c90300a00001
Ca\t1 "H-0002c90300a00001"\t\t# "node1 mlx5_0"
[1](2c90300a00001) \t"S-0002c90300b00005"[1]\t\t# lid 11 lmc 0 "MF0;leaf-1:MQM8700/U1" lid 5 4xHDR
"""


def read(text: str) -> Reading:
    data = text.encode()
    shown = Input("net.txt", data, content=data)
    assert fabric_topology.recognise(shown) > 0.9
    return fabric_topology.read(shown, Options())


@pytest.mark.parametrize("text", [LINES, FULL])
def test_links_have_rate_kind_and_both_ends(text: str) -> None:
    reading = read(text)
    assert reading.ports is not None
    rates = reading.ports.filter(pl.col("counter") == "rate").sort("value")
    assert rates["value"].to_list() == [100.0, 200.0]
    assert [" ".join(word for word in str(kind).split() if not word.startswith("0x")) for kind in rates["kind"]] == [
        "leaf to spine", "host node mlx_ to leaf",
    ]  # fmt: skip
    assert reading.facts is not None
    told = dict(reading.facts.select("key", "value").iter_rows())
    assert "spine-1" in told["lid 5 port 31"]
    assert "leaf-1" in told["lid 5"]
    assert told["0x2c90300a00001 port 1"].startswith("node1 mlx5_0 port 1 – ")


def test_ports_without_another_end_are_said() -> None:
    reading = read(LINES)
    assert reading.ports is not None
    assert reading.ports.filter(pl.col("counter") == "unsettled")["port"].to_list() == [32]
    assert any("port 33 (4x SDR)" in note for note in reading.source.notes)


def test_text_without_links_is_refused() -> None:
    data = LINES.splitlines()[-1].encode()
    with pytest.raises(InputError, match="shows no link"):
        fabric_topology.read(Input("x", data, content=data), Options())


@settings(max_examples=40, deadline=None)
@given(st.sampled_from([LINES, FULL]), st.integers(0, 700))
def test_any_cut_raises_nothing_else(text: str, cut: int) -> None:
    data = text.encode()[:cut]
    try:
        reading = fabric_topology.read(Input("x", data, content=data), Options())
    except InputError:
        return
    assert reading.ports is not None
    assert reading.ports.height


def test_apostrophes_in_names() -> None:
    plain, reading = read(LINES), read(LINES.replace("leaf-1", "Ann's leaf"))
    assert plain.facts is not None
    assert reading.facts is not None
    assert reading.facts["value"].to_list() == [v.replace("leaf-1", "Ann's leaf") for v in plain.facts["value"]]
    assert any("Ann's leaf port 33 (4x SDR)" in note for note in reading.source.notes)


def test_a_node_without_a_lid_has_no_lid() -> None:
    facts = read(FULL.replace(" lid 5 lmc 0", "")).facts
    assert facts is not None
    assert not [key for key in facts["key"] if "None" in key]


@pytest.mark.parametrize("text", [LINES, FULL])
@pytest.mark.parametrize("turned", [False, True])
def test_outputs_one_after_the_other_are_readings(text: str, turned: bool) -> None:
    later = text.replace("4x HDR", "1x HDR").replace("4xHDR", "1xHDR").replace("4x ???", "4x SDR")
    if turned and text == LINES:
        later = "".join(reversed(later.splitlines(keepends=True)))
    ports = read(text + later).ports
    assert ports is not None
    rates = ports.filter(pl.col("counter") == "rate", pl.col("peer").str.contains("leaf-1|node1"))
    assert rates.sort("snapshot").select("value", "snapshot").rows() == [(200.0, 0), (50.0, 1)]
    assert "unsettled" not in ports["counter"].to_list()
