"""Whole reports on every sample log, compared byte for byte with what somebody found right."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gdiag.model import Report
from gdiag.pipeline import diagnose, load
from gdiag.renderers import html, json_v1, markdown, sarif, terminal
from tests.golden.comparing import matches

ROOT = Path(__file__).parent.parent.parent
HERE = Path(__file__).parent
SAMPLES = sorted(p.name for p in (ROOT / "sample_logs").iterdir() if p.name not in {"truth.json", "README.md"})
SHOWN = "overflow-layer.jsonl.gz"
"""The sample whose report stands for each renderer."""


def report_on(sample: str, monkeypatch: pytest.MonkeyPatch) -> Report:
    """The report with paths as a user in the repository would give them."""
    monkeypatch.chdir(ROOT)
    return diagnose(load([f"sample_logs/{sample}"]))


@pytest.mark.parametrize("sample", SAMPLES)
def test_json(sample: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    matches(request, HERE / "json" / f"{sample}.json", json_v1.render(report_on(sample, monkeypatch)))


@pytest.mark.parametrize(("name", "screen"), [("80", terminal.Screen()), ("120-v", terminal.Screen(120, verbose=True))])
def test_text(
    name: str, screen: terminal.Screen, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    matches(request, HERE / "text" / f"{SHOWN}-{name}.txt", terminal.render(report_on(SHOWN, monkeypatch), screen))


@pytest.mark.parametrize(
    ("suffix", "render"), [("md", markdown.render), ("html", html.render), ("sarif", sarif.render)]
)
def test_other_forms(
    suffix: str, render: Callable[[Report], str], request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    matches(request, HERE / "text" / f"{SHOWN}.{suffix}", render(report_on(SHOWN, monkeypatch)))


def test_the_healthy_sample_finds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    healthy = next(sample for sample in SAMPLES if sample.startswith("healthy"))
    assert report_on(healthy, monkeypatch).worst is None
