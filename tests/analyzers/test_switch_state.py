"""Supplies, fans and sensors of switches."""

from __future__ import annotations

from pathlib import Path

import pytest

from gdiag.analyzers import switch_state
from gdiag.measures.run import RunView
from gdiag.model import Finding, Severity
from gdiag.pipeline import load
from tests.ingesters.switch_screens import screen


def judge(folder: Path, *texts: str, **limits: float) -> list[Finding]:
    """Findings of files that follow each other."""
    paths = [folder / f"switch{n}.txt" for n in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text)
    records = load(paths)
    return switch_state.analyze(RunView(records.runs[0], records), **limits)


def test_quiet_on_a_healthy_switch(tmp_path: Path) -> None:
    assert judge(tmp_path, screen() + screen(guid="0x2")) == []


@pytest.mark.parametrize(
    ("text", "severity", "words"),
    [
        (screen(supply="ERROR"), Severity.WARNING, "PSU1 DC power is ERROR, PSU1 fan status is ERROR"),
        (screen(fans="ERROR"), Severity.WARNING, "fan status is ERROR"),
        (screen(fan="1200"), Severity.WARNING, "fan#1 (rpm) turns at 1200"),
        (screen(fan="foo"), Severity.INFO, "does not tell fan#1 (rpm)"),
        (screen(temperature=""), Severity.INFO, "does not tell temperature"),
        (screen(supply=""), Severity.INFO, "PSU1 DC power"),
    ],
)
def test_what_is_wrong_or_missing_is_told(tmp_path: Path, text: str, severity: Severity, words: str) -> None:
    (finding,) = judge(tmp_path, text)
    assert (finding.severity, words in finding.message) == (severity, True)


def test_switches_without_a_name_are_not_the_same_in_two_files(tmp_path: Path) -> None:
    for given in (
        (screen(guid="", supply="ERROR"), screen(guid="")),
        (screen(guid=""), screen(guid="", supply="ERROR")),
    ):
        (finding,) = judge(tmp_path, *given)
        assert "switch 1: PSU1 DC power is ERROR" in finding.message


def test_of_several_readings_of_a_switch_the_latest_counts(tmp_path: Path) -> None:
    assert judge(tmp_path, screen(supply="ERROR"), screen()) == []
    assert len(judge(tmp_path, screen(), screen(supply="ERROR"))) == 1


def test_threshold(tmp_path: Path) -> None:
    assert judge(tmp_path, screen(fan="1200"), slow_fan=0.1) == []
