"""Counters of every form end as the same rows; what counts nothing is refused."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gdiag.errors import InputError
from gdiag.ingesters import port_counters
from gdiag.ingesters.reading import Input, Options
from gdiag.reference.port_counters import thresholds

PERFQUERY = """# Port extended counters: Lid 7 port 1 (CapMask: 0x5A00 CapMask2: 0x0000000)
PortSelect:......................1
CounterSelect:...................0x0000
PortXmitData:....................3710
SymbolErrorCounter:..............65535
LinkDownedCounter:...............2
PortRcvRemotePhysicalErrors:.....0
VL15Dropped:.....................1
ExcessiveBufferOverrunErrors:....0
"""
SYSFS = """/sys/class/infiniband/mlx5_1/fw_ver:28.41
/sys/class/infiniband/mlx5_1/ports/1/counters/link_downed:255
/sys/class/infiniband/mlx5_1/ports/1/hw_counters/out_of_sequence:3
/sys/class/infiniband/mlx5_1/ports/1/rate:400 Gb/sec (4X NDR)
/sys/class/infiniband/mlx5_1/ports/1/state:4: ACTIVE
/sys/class/infiniband/mlx5_1/ports/1/phys_state:5: LinkUp
"""
QUERY_ERRORS = """Errors for 0x7cfe "leaf01"
   GUID 0x7cfe port ALL: [SymbolErrorCounter == 12] [LinkDownedCounter == 3]
   GUID 0x7cfe port 4: [SymbolErrorCounter == 12] [LinkDownedCounter == 3]
"""
IBSTAT = """CA 'mlx4_0'
        CA type: MT4099
        Port 1:
                State: Down
                Physical state: Polling
                Rate: 10
        Port 2:
                State: Active
                Physical state: LinkUp
                Rate: 56
"""
LINKS = """CA: gpu-3 HCA-1:
      0xb883      6    1[  ] ==( 4X      25.78125 Gbps Active/  LinkUp)==>       3    3[  ] "switch" ( )
"""
ETHTOOL = "     rx_prio0_bytes: 88178\n     rx_prio3_bytes: 0\n     rx_discards_phy: 5\n"
SONIC = "    Port Tx    PFC0    PFC1    PFC2    PFC3    PFC4    PFC5    PFC6    PFC7\n  Ethernet6       0       0       0  15,437       0       0       0       0\n"
ALL = (PERFQUERY, SYSFS, QUERY_ERRORS, IBSTAT, LINKS, ETHTOOL, SONIC)


def rows(text: str) -> pl.DataFrame:
    data = text.encode()
    reading = port_counters.read(Input("ports.txt", data, content=data), Options())
    assert reading.ports is not None
    assert reading.source.rows == reading.ports.height
    return reading.ports


def values(text: str) -> dict[str, float]:
    table = rows(text)
    return dict(zip(table["counter"], table["value"], strict=True))


def test_perfquery() -> None:
    table = rows(PERFQUERY)
    seen = dict(zip(table["counter"], table["value"], strict=True))
    assert seen["symbol_error"] == 65535
    assert seen["vl15_dropped"] == 1
    assert "port_select" not in seen
    assert table.filter(pl.col("counter") == "symbol_error")["saturated"].to_list() == [True]
    assert table["device"].unique().to_list() == ["lid 7"]


def test_names_of_old_tools_are_those_of_new_ones() -> None:
    names = (
        "SymbolErrors", "LinkRecovers", "LinkDowned", "RcvErrors", "RcvRemotePhysErrors", "RcvSwRelayErrors", "XmtDiscards",
        "XmtConstraintErrors", "RcvConstraintErrors", "LinkIntegrityErrors", "ExcBufOverrunErrors", "VL15Dropped", "XmtWait",
        "XmtData",
    )  # fmt: skip
    told = values("# Port counters: Lid 12 port 1\n" + "".join(f"{n}:...{i}\n" for i, n in enumerate(names, start=1)))
    known = [
        "symbol_error", "link_error_recovery", "link_downed", "port_rcv_errors", "port_rcv_remote_physical_errors",
        "port_rcv_switch_relay_errors", "port_xmit_discards", "port_xmit_constraint_errors", "port_rcv_constraint_errors",
        "local_link_integrity_errors", "excessive_buffer_overrun_errors", "vl15_dropped", "port_xmit_wait", "port_xmit_data",
    ]  # fmt: skip
    assert list(told) == known
    assert set(known[:13]) <= set(thresholds())


@pytest.mark.parametrize("text", [PERFQUERY, QUERY_ERRORS, IBSTAT])
@pytest.mark.parametrize("quote", ["> ", ">> ", "// "])
def test_quoted_mail_and_comments(text: str, quote: str) -> None:
    quoted = "".join(f"{quote}{line}\n" for line in text.splitlines())
    assert port_counters.recognise(Input("x", quoted.encode())) > 0.5
    assert rows(quoted).equals(rows(text))


def test_lines_of_ports_without_the_line_of_their_node() -> None:
    told = "GUID 0x7cfe port 4: [XmtWait == 12] [SymbolErrorCounter == 41] [LinkDownedCounter == 3]\n"
    assert port_counters.recognise(Input("x", told.encode())) > 0.5
    assert values(told) == {"port_xmit_wait": 12, "symbol_error": 41, "link_downed": 3}


def test_sysfs_with_states_and_rate() -> None:
    assert values(SYSFS) == {"link_downed": 255, "out_of_sequence": 3, "rate": 400, "active": 1, "link_up": 1}


def test_sums_over_all_ports_are_left_out() -> None:
    table = rows(QUERY_ERRORS)
    assert table["port"].to_list() == [4, 4]
    assert table["device"].to_list() == ["leaf01", "leaf01"]


def test_ibstat_tells_ports_apart() -> None:
    active = rows(IBSTAT).filter(pl.col("counter") == "active")
    assert dict(zip(active["port"], active["value"], strict=True)) == {1: 0.0, 2: 1.0}


def test_links_ethtool_and_sonic() -> None:
    assert values(LINKS) == {"rate": 103.125, "active": 1}
    assert values(ETHTOOL)["rx_discards_phy"] == 5
    assert values(SONIC)["tx_prio3_pause"] == 15437


def test_two_readings_are_two_snapshots() -> None:
    table = rows(PERFQUERY + PERFQUERY)
    assert table.filter(pl.col("counter") == "link_downed")["snapshot"].to_list() == [0, 1]


@pytest.mark.parametrize("text", ALL)
def test_every_form_is_recognised(text: str) -> None:
    assert port_counters.recognise(Input("x", text.encode())) > 0.5


def test_names_without_counters_are_refused() -> None:
    with pytest.raises(InputError, match="no counter"):
        rows("CA 'mlx4_0'\n        CA type: MT4099\n")


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(ALL), st.integers(0, 400))
def test_truncation_keeps_complete_lines(text: str, cut: int) -> None:
    kept = text[: min(cut, len(text))]
    data = kept.encode()
    try:
        reading = port_counters.read(Input("x", data, content=data), Options())
    except InputError:
        return
    whole = kept[: kept.rfind("\n") + 1]
    assert reading.source.rows >= (
        rows(whole).height if port_counters.recognise(Input("x", whole.encode())) and _counts(whole) else 0
    )


def _counts(text: str) -> bool:
    try:
        rows(text)
    except InputError:
        return False
    return True


def test_interfaces_of_ethtool_are_no_snapshots_of_each_other() -> None:
    block = "NIC statistics:\n     rx_bytes: 100\n     rx_discards_phy: {}\n     tx_prio3_pause: 4\n"
    for name in ("# ethtool -S {}\n", "$ ethtool --statistics {}\n", "{}:\n", "=== {} ===\n"):
        text = "".join(name.format(device) + block.format(n) for device, n in (("eth0", 0), ("ens1f1", 5000)))
        table = rows(text)
        assert table["device"].unique().sort().to_list() == ["ens1f1", "eth0"]
        assert table["snapshot"].unique().to_list() == [0]


def test_ibdiagnet_prints_what_grew() -> None:
    table = rows(
        '-W- lid=0x0012 dev=54000 node-7/U1/P1 - "link_down_counter" increased during the run (difference value=2,difference allowed threshold=1)\n'
        '-W- S0002c90200404618/P12 - "symbol_error_counter" increased during the run (difference value=512,difference allowed threshold=10)\n'
    )
    last = table.filter(table["snapshot"] == 1)
    assert last.select("device", "port", "counter", "value").rows() == [
        ("node-7/U1", 1, "link_downed", 2.0), ("S0002c90200404618", 12, "symbol_error", 512.0),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "above",
    ["Mon Nov 30 02:16:40 UTC 2026\nhostname: node-7\n", "2026-11-30T02:16:40Z\n=== node-7 ===\n", "1796005000\n[root@node-7 ~]# perfquery -x\n",
     "Mon 30 Nov 2026 02:16:40 AM UTC\nHost: node-7\n"],
)  # fmt: skip
def test_host_and_moment_stand_above_a_dump(above: str) -> None:
    table = rows(above + PERFQUERY)
    assert table["host"].unique().to_list() == ["node-7"]
    assert table["time"].unique().to_list() == [1796005000.0]


def test_a_collector_prints_the_host_in_front_of_every_line() -> None:
    lines = ("Mon Nov 30 02:16:40 UTC 2026\n" + PERFQUERY).splitlines()
    text = "".join(f"{host}: {line}\n" for host in ("node-1", "node-2") for line in lines)
    table = rows(text)
    assert table["host"].unique(maintain_order=True).to_list() == ["node-1", "node-2"]
    assert table["snapshot"].unique().to_list() == [0]
    assert port_counters.recognise(Input("x", text.encode())) > 0.9


def test_bit_error_rates_of_mlxlink_and_ibdiagnet() -> None:
    text = "$ mlxlink -d mlx5_2 -c\nRaw Physical BER                   : 4E-8\nEffective Physical BER             : 15E-255\nSymbol BER : 3E-16\n"
    table = rows(text)
    assert dict(zip(table["counter"], table["value"], strict=True)) == {
        "raw_ber": 4e-8,
        "effective_ber": 15e-255,
        "symbol_ber": 3e-16,
    }
    assert table["device"].unique().to_list() == ["mlx5_2"]
    dump = (
        "Ty : # : #IB : GUID : LID : Sta : Raw BER : Effective BER : Symbol BER : Symbol Err : Node Desc\n"
        'SW : 17 : 17 : 0x1 : 10 (0xa) : ACT : 1e-12 : 2e-11 : 3e-14 : 4 : "MF0;leaf01:MQM9700/U1"\n'
        'CA : 1 : 1 : 0x2 : 11 (0xb) : ACT : N/A : N/A : N/A : 0 : "gpu-1 mlx5_0"\n'
    )
    table = rows(dump)
    assert table.select("device", "port", "counter", "value").rows() == [
        ("MF0;leaf01:MQM9700/U1", 17, "raw_ber", 1e-12), ("MF0;leaf01:MQM9700/U1", 17, "effective_ber", 2e-11),
        ("MF0;leaf01:MQM9700/U1", 17, "symbol_ber", 3e-14),
    ]  # fmt: skip


def test_iblinkinfo_of_a_switch_names_its_ports_and_who_is_there() -> None:
    table = rows(
        "Switch: 0x0c42a10300b95bfa MF0;sw1:MQM8700/U1:\n"
        '           3    1[  ] ==( 4X      25.78125 Gbps Active/  LinkUp)==>       1    1[  ] "gpu-0 HCA-1" ( )\n'
        '           3    2[  ] ==( 4X      25.78125 Gbps Active/  LinkUp)==>       2    1[  ] "gpu-1 HCA-1" ( )\n'
        '           3    4[  ] ==(                Down/ Polling)==>             [  ] "" ( )\n'
    )
    rates = table.filter(pl.col("counter") == "rate")
    assert rates["port"].to_list() == [1, 2]
    assert rates["device"].unique().to_list() == ["MF0;sw1:MQM8700/U1"]
    assert rates["kind"].n_unique() == 1


def test_ethtool_of_queues_is_known_by_its_head() -> None:
    table = rows("NIC statistics:\n     [0]: rx_bytes: 12\n     [1]: rx_bytes: 13\n     tx_errors: 0\n")
    assert table["counter"].to_list() == ["tx_errors"]


def test_a_banner_is_the_host_of_what_it_stands_above() -> None:
    for dump in (SYSFS, PERFQUERY, "Mon Nov 30 02:16:40 UTC 2026\n" + PERFQUERY, "mlxlink -d mlx5_0\nRaw BER : 1e-9\n"):
        table = rows(f"=== node01 ===\n{dump}=== node02 ===\n{dump}")
        assert table["host"].unique(maintain_order=True).to_list() == ["node01", "node02"]
        assert table["snapshot"].unique().to_list() == [0]


def test_a_banner_of_an_interface_is_no_host_of_what_follows() -> None:
    table = rows(f"=== ens1f0 ===\nNIC statistics:\n{ETHTOOL}{PERFQUERY}=== ens1f1 ===\n{ETHTOOL}{PERFQUERY}")
    assert table["host"].unique().to_list() == [None]


@pytest.mark.parametrize("inner", ["--- ens1f0 ---", "# ethtool -S ens1f0", "--- ens1f0 ---\n# ethtool -S ens1f0"])
def test_a_banner_above_a_named_interface_is_its_host(inner: str) -> None:
    table = rows("".join(f"=== node{n} ===\n{inner}\nNIC statistics:\n{ETHTOOL}" for n in (1, 2)))
    assert table.select("host", "device").unique(maintain_order=True).rows() == [
        ("node1", "ens1f0"),
        ("node2", "ens1f0"),
    ]
    assert table["snapshot"].unique().to_list() == [0]
