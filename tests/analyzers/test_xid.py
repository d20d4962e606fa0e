from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

from gdiag.analyzers import xid
from gdiag.measures.run import RunView
from gdiag.model import Severity
from gdiag.schema import TABLES
from tests.analyzers.made_telemetry import START, card, noisy, timed, watched


def saying(*rows: dict[str, object]) -> RunView:
    """A run with telemetry whose kernel log holds these lines."""
    types = TABLES["events"]
    plain: dict[str, object] = {
        "run": "run",
        "source": 0,
        "line": 1,
        "kind": "xid",
        "time": START + 1000,
        "zone_known": True,
    }
    events = pl.DataFrame([{c: (plain | r).get(c) for c in types} for r in rows], schema=types)
    run = watched(timed(noisy()), [card(g).with_columns(pl.lit(f"0000:{g:02x}:00").alias("bus_id")) for g in range(2)])
    return RunView(run.run, replace(run.records, events=events))


def test_a_machine_error_is_critical_and_placed_by_bus_id_and_time() -> None:
    (finding,) = xid.analyze(
        saying({"value": 79.0, "bus_id": "0000:01:00", "text": "Xid 79, GPU has fallen off the bus"})
    )
    assert finding.severity is Severity.CRITICAL
    assert (finding.where.host, finding.where.gpu) == ("node-1", 1)
    assert finding.where.step is not None
    assert abs(finding.where.step - 500) <= 3
    assert finding.measure("hardware") is True
    assert "power-cycle" in str(finding.measure("action"))


def test_a_programs_error_is_told_from_it() -> None:
    (finding,) = xid.analyze(saying({"value": 31.0, "text": "MMU fault"}))
    assert finding.severity is Severity.WARNING
    assert finding.measure("hardware") is False


def test_repeats_are_counted_once() -> None:
    (finding,) = xid.analyze(saying(*[{"value": 13.0, "bus_id": "0000:00:00", "text": "x"}] * 5))
    assert finding.number("count") == 5


@pytest.mark.parametrize(
    ("value", "text", "severity"),
    [
        (43.0, "Ch 20", Severity.INFO),
        (63.0, "Row Remapper: New row marked for remapping", Severity.WARNING),
        (149.0, "NETIR_LINK_EVT Fatal XC0 i0 Link 01", Severity.CRITICAL),
        (145.0, "RLW_REMAP Nonfatal XC0 i0 Link 02", Severity.WARNING),
        (74.0, "NVLink: fatal error detected on link 14(0x0, 0x0, 0x10000, 0x0)", Severity.CRITICAL),
        (74.0, "NVLink: error on link 14(0x1, 0x0, 0x0, 0x0)", Severity.INFO),
        (45.0, "Ch 1 caused by previous Xid 149", Severity.CRITICAL),
        (45.0, "Ch 1", Severity.INFO),
        (9999.0, "news", Severity.INFO),
    ],
)
def test_severity_by_class(value: float, text: str, severity: Severity) -> None:
    (finding,) = xid.analyze(saying({"value": value, "text": text}))
    assert finding.severity is severity


def test_details_are_attached_and_are_no_findings() -> None:
    (finding,) = xid.analyze(
        saying(
            {"value": 149.0, "bus_id": "0000:01:00", "text": "NETIR_LINK_EVT Fatal"},
            {
                "value": 154.0,
                "bus_id": "0000:01:00",
                "text": "Xid (PCI:0000:01:00): 154, GPU recovery action changed from 0x0 (None) to 0x4 (Drain and Reset)",
            },
        )
    )
    assert "Drain and Reset" in str(finding.measure("recovery_action"))


def test_no_lines_no_findings() -> None:
    assert xid.analyze(saying({"kind": "checkpoint", "text": "saved"})) == []


def at(code: int, seconds: float, bus: str = "0000:00:00", pid: int = 42) -> dict[str, object]:
    return {
        "value": float(code),
        "bus_id": bus,
        "time": START + 1000 + seconds,
        "line": 1 + int(seconds),
        "text": f"pid={pid}, x",
    }


def test_what_comes_right_after_a_programs_error_is_its_consequence() -> None:
    first, timed_out, removed = xid.analyze(saying(at(13, 0), at(109, 8), at(45, 11)))
    assert first.message.endswith("; Xid 45 and 109 follow at once")
    assert timed_out.message.endswith("context-switch time-out, right after Xid 13")
    assert [timed_out.severity, removed.severity] == [Severity.WARNING, Severity.INFO]
    assert timed_out.measure("hardware") is False
    assert timed_out.number("follows") == 13
    alone, late = xid.analyze(saying(at(13, 0), at(109, 600)))
    assert "follow" not in alone.message
    assert late.severity is Severity.CRITICAL


def test_a_machines_error_after_a_programs_is_its_own() -> None:
    _, worse = xid.analyze(saying(at(13, 0), at(48, 5)))
    assert worse.severity is Severity.CRITICAL
    assert worse.measure("hardware") is True


def test_only_removed_channels_follow_an_error_of_another_gpu() -> None:
    _, other, removed = xid.analyze(saying(at(79, 0), at(31, 2, "0000:01:00"), at(45, 3, "0000:01:00")))
    assert other.measure("follows") is None
    assert removed.measure("follows_on") == "0000:01:00"  # the nearest earlier one is its own GPU's
    _, alone = xid.analyze(saying(at(79, 0), at(45, 3, "0000:01:00")))
    assert alone.measure("follows_on") == "0000:00:00"


def test_without_clocks_the_process_joins_them() -> None:
    lines = [at(13, 0), at(109, 8), at(31, 9, pid=43)]
    found = xid.analyze(saying(*({**line, "time": None} for line in lines)))
    assert [f.measure("follows") for f in found] == [None, 13, None]
