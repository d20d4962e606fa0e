"""Pages of ethtool -m: figures, limits and flags of every lane; a page without them says so."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gdiag.ingesters import transceivers
from gdiag.ingesters.reading import Input, Options, Reading

SFP = """\tIdentifier                                : 0x03 (SFP)
\tLaser wavelength                          : 1270nm
\tLaser bias current                        : 13.088 mA
\tLaser output power                        : 3.6119 mW / 5.58 dBm
\tReceiver signal average optical power     : 0.0004 mW / -33.57 dBm
\tModule temperature                        : 38.00 degrees C / 100.40 degrees F
\tModule voltage                            : 3.4844 V
\tLaser rx power low alarm                  : On
\tModule temperature high warning           : Off
\tLaser rx power low alarm threshold        : 0.0010 mW / -30.00 dBm
\tModule temperature high alarm threshold   : 100.00 degrees C / 212.00 degrees F
"""
QSFP = """Identifier                                : 0x11 (QSFP28)
Laser tx bias current (Channel 1)         : 6.750 mA
Transmit avg optical power (Channel 1)    : 1.3924 mW / 1.44 dBm
Rcvr signal avg optical power(Channel 1)  : 0.9720 mW / -0.12 dBm
Rcvr signal avg optical power(Channel 2)  : 0.0000 mW / -inf dBm
Laser bias current high alarm   (Chan 1)  : Off
Laser rx power low alarm   (Channel 2)    : On
Laser rx power low alarm threshold        : 0.0646 mW / -11.90 dBm
"""
BARE = "Identifier                                : 0x03 (SFP)\nVendor name                               : Some\n"


def read(text: str) -> Reading:
    data = text.encode()
    given = Input("m.txt", data[:65536], None, data)
    assert transceivers.recognise(given) > 0
    return transceivers.read(given, Options())


def values(reading: Reading) -> dict[tuple[str, int | None], float]:
    assert reading.ports is not None
    return {(name, lane): v for name, lane, v in reading.ports.select("counter", "port", "value").iter_rows()}


def test_a_page_of_one_lane() -> None:
    found = values(read(SFP))
    assert found["module_rx_power", None] == -33.57
    assert found["module_rx_power_low_alarm", None] == 1
    assert found["module_rx_power_low_alarm_limit", None] == -30
    assert found["module_temperature", None] == 38
    assert found["module_temperature_high_warning", None] == 0
    assert read(SFP).source.notes == ("1 transceiver (SFP), received power -33.57 dBm, 1 alarm or warning flags on",)


def test_lanes_are_ports_and_no_power_is_darkness() -> None:
    found = values(read(QSFP))
    assert (found["module_rx_power", 1], found["module_rx_power", 2]) == (-0.12, -40)
    assert (found["module_bias", 1], found["module_bias_high_alarm", 1], found["module_rx_power_low_alarm", 2]) == (
        6.75,
        0,
        1,
    )


def test_interfaces_named_above_their_pages() -> None:
    ports = read(f"# ethtool -m ens1f0\n{SFP}\nens1f1:\n{QSFP}").ports
    assert ports is not None
    assert ports["device"].unique(maintain_order=True).to_list() == ["ens1f0", "ens1f1"]


def test_a_module_without_diagnostics_is_said_to_have_none() -> None:
    reading = read(BARE)
    assert reading.ports is None
    assert "cannot be judged" in reading.source.notes[0]


def test_other_lines_are_no_figures() -> None:
    assert transceivers.recognise(Input("x", b"step loss\n1 2.0\n")) == 0
    assert read(BARE + "Module temperature: warm\nLaser rx power low alarm : maybe\n").ports is None


@settings(max_examples=30, deadline=None)
@given(st.integers(55, len(SFP + QSFP)))
def test_a_cut_page_keeps_its_complete_lines(length: int) -> None:
    whole, cut = read(SFP + QSFP).ports, read((SFP + QSFP)[:length]).ports
    assert whole is not None
    if cut is not None and cut.height > 1:
        columns = ["line", "counter", "value"]
        assert cut.select(columns)[:-1].join(whole.select(columns), on=columns, how="anti").height == 0
        assert cut.schema["value"] == pl.Float64


def places(text: str) -> list[tuple[str | None, str | None]]:
    ports = read(text).ports
    assert ports is not None
    assert ports["snapshot"].unique().to_list() == [0]
    return ports.select("host", "device").unique(maintain_order=True).rows()


@pytest.mark.parametrize("named", ["# ethtool -m ens1f0", "ens1f0:", "--- ens1f0 ---", "$ ethtool -m ens1f0"])
def test_a_banner_above_named_pages_is_their_host(named: str) -> None:
    text = "".join(f"=== node0{n} ===\n{named}\n{SFP}" for n in (1, 2))
    assert places(text) == [("node01", "ens1f0"), ("node02", "ens1f0")]


def test_a_prompt_tells_the_host_of_its_command() -> None:
    text = "".join(f"[root@node0{n} ~]# ethtool -m ens1f0\n{SFP}" for n in (1, 2))
    assert places(text) == [("node01", "ens1f0"), ("node02", "ens1f0")]


def test_a_banner_right_above_a_page_names_it() -> None:
    assert places(f"=== ens1f0 ===\n{SFP}=== ens1f1 ===\n{SFP}") == [(None, "ens1f0"), (None, "ens1f1")]


def test_pages_without_a_name_are_different_modules() -> None:
    assert places(SFP + SFP) == [(None, None), (None, "page 2")]
    later = read(f"Mon Nov 30 02:16:40 UTC 2026\n{SFP}Mon Nov 30 03:16:40 UTC 2026\n{SFP}").ports
    assert later is not None
    assert later["snapshot"].unique().sort().to_list() == [0, 1]


def test_hosts_in_front_of_the_lines() -> None:
    text = "".join(f"node{n}: {line}\n" for n in (1, 2) for line in SFP.splitlines())
    assert places(text) == [("node1", None), ("node2", None)]
    assert values(read(text)) == values(read(SFP))
