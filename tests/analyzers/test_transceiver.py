"""GD712: too little light, alarm flags, and what is no fault."""

from __future__ import annotations

import pytest

from gdiag.analyzers import transceiver
from gdiag.ingesters import transceivers
from gdiag.ingesters.assemble import assemble
from gdiag.ingesters.reading import Input, Options
from gdiag.measures.run import RunView
from gdiag.model import Finding, Severity

LIMIT = "Laser rx power low alarm threshold        : 0.0646 mW / -11.90 dBm\n"


def page(*lines: str) -> str:
    return "# ethtool -m ens1f0\nIdentifier                                : 0x11 (QSFP28)\n" + "\n".join(lines) + "\n"


def lanes(*power: float) -> list[str]:
    return [f"Rcvr signal avg optical power(Channel {i})  : 0.5 mW / {p:.2f} dBm" for i, p in enumerate(power, 1)]


def judge(*texts: str, margin: float = 0.0) -> list[Finding]:
    """Findings of files that follow each other."""
    given = [Input(f"m{n}.txt", text.encode(), None, text.encode()) for n, text in enumerate(texts)]
    records = assemble([transceivers.read(one, Options()) for one in given])
    return transceiver.analyze(RunView(records.runs[0], records), margin=margin)


@pytest.mark.parametrize(
    "text",
    [
        page(*lanes(-0.1, -0.4, 0.5, 0.5)) + LIMIT,
        page(*lanes(-11.8)) + LIMIT,
        page(*lanes(-20.0)),
        page("Module temperature high alarm             : Off", "Laser rx power low alarm                  : Off"),
        page("Vendor name                               : Some"),
    ],
)
def test_quiet(text: str) -> None:
    assert judge(text) == []


def test_too_little_light_on_one_lane_and_its_threshold() -> None:
    text = page(*lanes(-0.1, -14.2)) + LIMIT
    (finding,) = judge(text)
    assert finding.severity is Severity.WARNING
    assert (
        finding.message
        == "the transceiver of ens1f0, lane 2, receives -14.2 dBm, below its low-alarm limit of -11.9 dBm"
    )
    assert judge(text, margin=-3.0) == []


def test_no_light_at_all_is_a_note_and_on_one_lane_a_fault() -> None:
    flags = "Laser rx power low alarm   (Channel 1)    : On"
    (note,) = judge(page(*lanes(-40.0, -40.0), flags) + LIMIT)
    assert note.severity is Severity.INFO
    (fault,) = judge(page(*lanes(-40.0, -0.4), flags) + LIMIT)
    assert fault.severity is Severity.WARNING
    assert "lane 1" in fault.message


def test_a_lane_without_light_leaves_the_flags_of_the_others() -> None:
    flags = [f"Laser rx power high alarm  (Channel {lane})    : On" for lane in (1, 2)]
    dark, flag = judge(page(*lanes(-40.0, 5.0), *flags, "Laser rx power low alarm                  : On") + LIMIT)
    assert "lane 1, receives no light" in dark.message
    assert "lane 2: high alarm flag of its received power" in flag.message
    (note,) = judge(page(*lanes(-40.0, -40.0), *flags) + LIMIT)
    assert note.severity is Severity.INFO


def test_of_several_readings_of_a_module_the_latest_counts() -> None:
    weak, fine = page(*lanes(-15.0)) + LIMIT, page(*lanes(-2.0)) + LIMIT
    assert judge(weak, fine) == judge(weak + fine) == []
    assert len(judge(fine, weak)) == len(judge(fine + weak)) == 1
    # Nothing says that modules without a name are the same in two files.
    nameless = weak.replace("# ethtool -m ens1f0\n", "")
    unnamed = fine.replace("# ethtool -m ens1f0\n", "")
    assert len(judge(nameless, unnamed)) == len(judge(unnamed + nameless, unnamed + unnamed)) == 1


@pytest.mark.parametrize(
    ("flag", "severity"),
    [("Module temperature high alarm", Severity.WARNING), ("Laser output power low warning", Severity.INFO)],
)
def test_flags(flag: str, severity: Severity) -> None:
    (finding,) = judge(
        page(f"{flag:42}: On", "Module temperature                        : 88.00 degrees C / 190.40 degrees F")
    )
    assert finding.severity is severity
    assert "flag of its" in finding.message
