"""GD710: what the mlx5 driver writes into the kernel log."""

from __future__ import annotations

import pytest

from gdiag.analyzers import nic_events
from gdiag.ingesters import kernel_log
from gdiag.ingesters.assemble import assemble
from gdiag.ingesters.reading import Input, Options, Reading
from gdiag.model import Finding, Severity
from gdiag.triage import explain
from tests.analyzers.made_runs import view
from tests.analyzers.made_telemetry import noisy, timed

AT = "2026-05-28T20:{:02}:{:02}+00:00 node7 kernel: mlx5_core 0000:53:00.0"
"""Some minutes into a run that begins at 2026-05-28T20:26:40."""
DOWN, UP = " mlx5_3: Port: 1 Link DOWN", " mlx5_3: Port: 1 Link ACTIVE"


def read(*lines: str) -> Reading:
    data = "\n".join(lines).encode()
    given = Input("kern.log", data, content=data)
    assert kernel_log.recognise(given) > 0.5
    return kernel_log.read(given, Options())


def judge(*lines: str, slow: bool = False) -> list[Finding]:
    records = assemble([read(*lines)])
    seconds = noisy()
    if slow:
        seconds[[100, 101, 102, 103, 104]] *= 4
    run = view(timed(seconds), events=records.events)
    return nic_events.analyze(run)


@pytest.mark.parametrize(
    ("line", "severity", "words"),
    [
        (DOWN, Severity.CRITICAL, "does not come up again"),
        (": mlx5_port_module_event:1131:(pid 0): Port module event[error]: module 0, Cable error, High Temperature", Severity.WARNING, "too hot"),
        (": mlx5_pcie_event:299:(pid 2): Detected insufficient power on the PCIe slot (27W).", Severity.INFO, "less power"),
        (": mlx5_health_try_recover:381:(pid 1): health recovery flow aborted, PCI reads still not working", Severity.CRITICAL, "firmware failed"),
        (" eth1: Error cqe on cqn 0x817, ci 0x8, qn 0x1dbb, opcode 0xd, syndrome 0x1", Severity.WARNING, "ended with an error"),
        (": print_health_info:520:(pid 0): synd 0x1: firmware internal error", Severity.WARNING, "reports an error"),
    ],
)  # fmt: skip
def test_a_line_of_the_driver(line: str, severity: Severity, words: str) -> None:
    (finding,) = judge(AT.format(30, 5) + line)
    assert finding.severity is severity
    assert words in finding.message
    assert finding.where.host == "node7"
    assert finding.where.step == 102


@pytest.mark.parametrize(
    "line",
    [": mlx5_cmd_out_err:838:(pid 26): ACCESS_REG(0x805) op_mod(0x1) failed, status bad resource(0x5)", UP, ": firmware version: 28.41.1000",
     ": 126.028 Gb/s available PCIe bandwidth (32.0 GT/s PCIe x4 link)"],
)  # fmt: skip
def test_lines_that_say_nothing(line: str) -> None:
    assert judge(AT.format(30, 5) + line) == []


def test_both_sides_of_one_event_count_once_and_flaps_count_each() -> None:
    once = [AT.format(30, 5) + " ens1f0np0: Link down", AT.format(30, 6) + DOWN, AT.format(30, 20) + UP]
    (finding,) = judge(*once)
    assert finding.severity is Severity.WARNING
    assert finding.message == "mlx5_3 port 1 of node7: the link went down at step 102"
    again = [AT.format(40, 5) + DOWN, AT.format(40, 20) + UP]
    (finding,) = judge(*once, *again)
    assert "2 times between steps 102 and" in finding.message


def test_slow_steps_near_it_make_it_evidence_of_their_incident() -> None:
    lines = [AT.format(30, 1) + DOWN, AT.format(30, 9) + UP]
    (finding,) = judge(*lines, slow=True)
    assert finding.measure("meets_slow_steps") is True
    assert "slow steps within a minute" in finding.message


def test_without_a_clock_a_link_that_was_down_is_a_note() -> None:
    (finding,) = judge(
        "[   12.332211] mlx5_core 0000:53:00.0 mlx5_3: Port: 1 Link DOWN",
        "[   13.3] mlx5_core 0000:53:00.0 mlx5_3: Port: 1 Link ACTIVE",
    )
    assert finding.severity is Severity.INFO


def test_the_action_is_that_of_the_line() -> None:
    findings = tuple(judge(AT.format(30, 5) + ": print_health_info:520:(pid 0): synd 0x1: firmware internal error"))
    (incident,) = explain(findings, {})
    assert incident.actions == (
        "Update the card's firmware and power-cycle the host; replace the card when it returns (the card at 0000:53:00.0 of node7)",
    )
