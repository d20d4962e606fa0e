"""GD708: size by size against a baseline."""

from __future__ import annotations

from pathlib import Path

import pytest

from gdiag.analyzers import below_baseline
from gdiag.errors import UsageError
from gdiag.ingesters import load
from gdiag.ingesters.bandwidth_baseline import write
from gdiag.measures.bandwidth import sweeps
from gdiag.measures.bandwidth_compare import baseline
from gdiag.measures.run import RunView
from gdiag.model import Finding, Severity
from gdiag.pipeline import held_against
from tests.ingesters.nccl_formats import Bench, text

SIZES = tuple(1 << k for k in range(18, 31))


def judge(tmp_path: Path, now: float, before: float, *, saved: bool = False, **limits: float) -> list[Finding]:
    (tmp_path / "now.txt").write_text(text(Bench(peak=now, sizes=SIZES)))
    (tmp_path / "before.txt").write_text(text(Bench(peak=before, sizes=SIZES)))
    reference = load([tmp_path / "before.txt"])
    if saved:
        (tmp_path / "saved.json").write_text(
            write(baseline(sweeps(reference.collectives, reference.devices, reference.facts)))
        )
        reference = load([tmp_path / "saved.json"])
    records = held_against(load([tmp_path / "now.txt"]), reference)
    return below_baseline.analyze(RunView(records.runs[0], records), **limits)


@pytest.mark.parametrize("saved", [False, True])
def test_fires_on_a_shortfall(tmp_path: Path, saved: bool) -> None:
    (finding,) = judge(tmp_path, 150.0, 200.0, saved=saved)
    assert finding.severity is Severity.WARNING
    assert (finding.number("ratio") or 0) == pytest.approx(0.76, abs=0.03)


def test_quiet_on_equal_and_faster(tmp_path: Path) -> None:
    assert judge(tmp_path, 200.0, 200.0) == []
    assert judge(tmp_path, 240.0, 200.0) == []


def test_threshold(tmp_path: Path) -> None:
    assert [f.severity for f in judge(tmp_path, 185.0, 200.0)] == [Severity.INFO]
    assert judge(tmp_path, 185.0, 200.0, tolerance=0.2) == []


def test_a_baseline_without_rows_is_refused(tmp_path: Path) -> None:
    (tmp_path / "now.txt").write_text(text(Bench()))
    (tmp_path / "empty.txt").write_text("# nThread 1 nGpus 8 minBytes 8 maxBytes 16\n# nccl-tests version 2.19.6\n")
    with pytest.raises(UsageError):
        held_against(load([tmp_path / "now.txt"]), load([tmp_path / "empty.txt"]))
