"""GD706: growth between readings, thresholds since the last reset, state, rate and priorities."""

from __future__ import annotations

from pathlib import Path

import pytest

from gdiag.analyzers import port_errors
from gdiag.ingesters import port_counters
from gdiag.ingesters.assemble import assemble
from gdiag.ingesters.reading import Input, Options
from gdiag.measures.run import RunView
from gdiag.model import Finding, Severity
from gdiag.pipeline import load


def reading(**values: int) -> str:
    return "".join(f"/sys/class/infiniband/mlx5_0/ports/1/counters/{name}:{value}\n" for name, value in values.items())


def judge(*outputs: str, **limits: float) -> list[Finding]:
    data = [text.encode() for text in outputs]
    readings = [port_counters.read(Input(f"{i}.txt", d, content=d), Options()) for i, d in enumerate(data)]
    records = assemble(readings)
    return port_errors.analyze(RunView(records.runs[0], records), **limits)


@pytest.mark.parametrize(
    ("before", "after", "severity"),
    [
        ({"link_downed": 1}, {"link_downed": 2}, Severity.CRITICAL),
        ({"port_rcv_errors": 4}, {"port_rcv_errors": 9}, Severity.WARNING),
        ({"symbol_error": 0}, {"symbol_error": 500}, Severity.WARNING),
    ],
)
def test_fires_on_growth(before: dict[str, int], after: dict[str, int], severity: Severity) -> None:
    (finding,) = judge(reading(**before), reading(**after))
    assert finding.severity is severity
    assert "grew by" in finding.message


def test_quiet_when_nothing_grows_and_on_clean_ports() -> None:
    assert judge(reading(link_downed=7), reading(link_downed=7)) == []
    assert judge(reading(link_downed=0, symbol_error=0, excessive_buffer_overrun_errors=15)) == []


def test_saturated_counters_are_at_least() -> None:
    (finding,) = judge(reading(link_downed=255))
    assert "at least 255" in finding.message
    assert finding.severity is Severity.WARNING


def test_threshold() -> None:
    assert [f.severity for f in judge(reading(port_rcv_errors=14))] == [Severity.INFO]
    assert judge(reading(port_rcv_errors=14), factor=2.0) == []


def test_ports_alike_are_one_finding() -> None:
    text = reading(port_rcv_errors=14) + reading(port_rcv_errors=20).replace("mlx5_0", "mlx5_1")
    (finding,) = judge(text)
    assert finding.number("ports") == 2


def test_a_port_that_is_down_beside_one_that_is_up() -> None:
    text = "CA 'a'\n  Port 1:\n   State: Down\n   Physical state: Polling\n  Port 2:\n   State: Active\n   Physical state: LinkUp\n"
    assert [f.severity for f in judge(text)] == [Severity.WARNING]


def test_lossless_class_not_applied() -> None:
    (finding,) = judge("  rx_prio0_bytes: 88178050405854\n  rx_prio3_bytes: 0\n  tx_prio3_bytes: 0\n")
    assert "priority 3" in finding.message


def test_one_paused_counter_is_not_followed_by_none() -> None:
    (finding,) = judge(reading(rx_prio3_pause=7))
    assert finding.message == "flow control paused traffic 7 times since the last reset (rx_prio3_pause)"


def test_a_bit_error_rate_after_correction() -> None:
    (finding,) = judge("Effective Physical BER : 3E-9\nRaw Physical BER : 1E-8\n")
    assert "effective_ber is 3e-09" in finding.message
    assert finding.severity is Severity.WARNING
    assert judge("Effective Physical BER : 15E-255\nSymbol BER : 15E-255\n") == []


def test_what_grows_over_hours_is_allowed_as_much_every_hour() -> None:
    def at(hour: int, errors: int) -> str:
        return f"2026-01-05 {hour:02}:00:00\nhost n1\n" + reading(symbol_error=errors)

    assert [f.severity for f in judge(at(1, 0), at(11, 600))] == [Severity.INFO]
    (finding,) = judge(at(1, 0), at(2, 600))
    assert finding.where.host == "n1"
    assert finding.where.last_time is not None
    assert finding.where.time == finding.where.last_time - 3600


def test_a_port_whose_counters_fell_is_another_one_or_was_reset() -> None:
    before, after = reading(port_rcv_errors=4, port_rcv_data=9000), reading(port_rcv_errors=9, port_rcv_data=50)
    assert judge(before, after) == []


def test_waits_for_credit_are_a_share_of_the_time() -> None:
    def at(wait: int, data: int) -> str:
        return reading(port_xmit_wait=wait, port_xmit_data=data)

    (finding,) = judge(at(0, 0), at(100, 900))
    assert "10% of its sending time" in finding.message
    assert finding.measure("kind") == "congestion"
    assert judge(at(0, 0), at(5, 995)) == []
    assert judge(at(100, 900)) == []


def _fabric(*rates: str, kind: str = "node") -> bytes:
    """A leaf with a host on each port, as ibnetdiscover -p prints it."""
    return "".join(
        f"SW 5 {i} 0x5 4x {rate} - CA {10 + i} 1 0x{100 + i:x} ( 'leaf' - '{kind}{i} mlx5_0' )\n"
        for i, rate in enumerate(rates, start=1)
    ).encode()


def _fabric_view(tmp_path: Path, *texts: bytes) -> RunView:
    for number, data in enumerate(texts):
        (tmp_path / f"net{number}.txt").write_bytes(data)
    records = load(sorted(tmp_path.glob("net*.txt")))
    return RunView(records.runs[0], records)


def test_a_link_slower_than_its_like_is_named_by_both_ends(tmp_path: Path) -> None:
    (finding,) = port_errors.analyze(_fabric_view(tmp_path, _fabric("HDR", "HDR", "EDR", "HDR")))
    assert finding.severity is Severity.WARNING
    assert "leaf port 3 (to node3 mlx5_0 port 1): 100 Gb/s where 3 ports like it" in finding.message


def test_a_mixed_fleet_is_no_fault(tmp_path: Path) -> None:
    mixed = _fabric("HDR", "HDR", "HDR", "HDR") + _fabric("EDR", "EDR", kind="old").replace(b"0x5", b"0x6")
    assert port_errors.analyze(_fabric_view(tmp_path, mixed)) == []
    assert port_errors.analyze(_fabric_view(tmp_path, _fabric("HDR", "HDR", "EDR", "EDR"))) == []


def test_counters_beside_a_topology_name_the_cable(tmp_path: Path) -> None:
    dump = b"# Port extended counters: Lid 5 port 2 (CapMask: 0x5300 CapMask2: 0x0000002)\nLinkDownedCounter:...............3\n"
    (finding,) = port_errors.analyze(_fabric_view(tmp_path, _fabric("HDR", "HDR"), dump))
    assert "leaf port 2 – node2 mlx5_0 port 1" in finding.message


def test_hosts_without_a_name_are_told_apart_by_their_adapters() -> None:
    def sysfs(guid: str, count: int) -> str:
        return reading(link_downed=count) + f"/sys/class/infiniband/mlx5_0/node_guid:{guid}\n"

    one, two = "e41d:2d03:007b:4080", "e41d:2d03:007b:5090"
    assert {f.severity for f in judge(sysfs(one, 1), sysfs(two, 4))} == {Severity.WARNING}
    (grown,) = judge(sysfs(one, 1), sysfs(one, 4))
    assert grown.severity is Severity.CRITICAL

    def ibstat(guid: str, state: str) -> str:
        link = "LinkUp" if state == "Active" else "Polling"
        ports = "".join(
            f"\tPort {n}:\n\t\tState: {s}\n\t\tPhysical state: {link}\n" for n, s in ((1, state), (2, "Active"))
        )
        return f"CA 'mlx5_0'\n\tNode GUID: 0x{guid.replace(':', '')}\n{ports}"

    (down,) = judge(ibstat(one, "Down"), ibstat(two, "Active"))
    assert down.message == "mlx5_0 port 1 is not active"
    assert judge(ibstat(one, "Down"), ibstat(one, "Active")) == []
