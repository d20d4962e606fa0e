from __future__ import annotations

import json
from pathlib import Path

import pytest

from gdiag.analyzers import ANALYZERS
from gdiag.analyzers.selection import choose
from gdiag.errors import InputError
from gdiag.fleet import survey
from gdiag.measures import throttling
from gdiag.pipeline import diagnose, load
from tests.cli.test_thermal import telemetry

CHECKS = choose(ANALYZERS, ["GD403", "GD6"])


def hosts(folder: Path, count: int = 3) -> Path:
    """One log per host; host 1's second GPU throttles."""
    for host in range(count):
        path = telemetry(folder, hot_from=300 if host == 1 else None)
        path.rename(folder / f"smi_node-{host:02d}.csv")
    (folder / "notes.txt").write_text("nothing of interest\n")
    return folder


def test_counting_file_by_file_finds_what_reading_all_rows_finds(tmp_path: Path) -> None:
    records, counted = survey.survey([str(hosts(tmp_path))], workers=1)
    assert records.gpus.height == 0
    fleet = diagnose(records, None, CHECKS, counted)
    whole = diagnose(load([str(tmp_path)]), None, CHECKS)
    assert [(f.code, f.where.host, f.where.gpu) for f in fleet.findings] == [
        (f.code, f.where.host, f.where.gpu) for f in whole.findings
    ]
    assert ("GD601", "node-01", 1) in [(f.code, f.where.host, f.where.gpu) for f in fleet.findings]
    assert any("notes.txt" in s.path for s in records.sources)


def test_several_processes_give_the_same(tmp_path: Path) -> None:
    hosts(tmp_path)
    one, other = survey.survey([str(tmp_path)], workers=1)[1], survey.survey([str(tmp_path)], workers=2)[1]
    assert one.health.partial.bins.equals(other.health.partial.bins)


def test_the_runs_steps_place_the_events(tmp_path: Path) -> None:
    logs = tmp_path / "smi"
    logs.mkdir()
    hosts(logs)
    rows = [{"step": i, "time": 1772359200.0 + 2 * i, "step_time": 2.0, "loss": 2.0} for i in range(1000)]
    (tmp_path / "run.jsonl").write_text("\n".join(json.dumps(r) for r in rows))
    records, counted = survey.survey([str(logs)], [str(tmp_path / "run.jsonl")], workers=1)
    (finding,) = [f for f in diagnose(records, None, CHECKS, counted).findings if f.code == "GD601"]
    assert finding.where.step is not None
    assert abs(finding.where.step - 750) <= 20


def test_merging_is_adding(tmp_path: Path) -> None:
    gpus = load([str(telemetry(tmp_path))]).gpus
    halves = [throttling.partial(gpus.filter(gpus["gpu"] == g), 60.0) for g in (0, 1)]
    parts = [throttling.partial(gpus[:333], 60.0), throttling.partial(gpus[333:], 60.0)]
    whole = throttling.partial(gpus, 60.0)
    assert throttling.merge(halves).bins.equals(whole.bins)
    assert throttling.merge(parts).bins.select(whole.bins.columns).equals(whole.bins)


def test_no_telemetry_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"step": 1, "loss": 2.0}\n{"step": 2, "loss": 2.0}\n')
    with pytest.raises(InputError, match="no GPU telemetry"):
        survey.survey([str(tmp_path)], workers=1)


def test_size_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(telemetry(tmp_path))
    assert not survey.is_large([path])
    monkeypatch.setattr(survey, "LARGE", 1000)
    assert survey.is_large([path])


def test_paths_are_looked_for_as_every_command_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hosts(tmp_path)
    monkeypatch.setattr(survey, "LARGE", 1000)
    assert survey.is_large([str(tmp_path / "*.csv")])
    assert not survey.is_large(["-", str(tmp_path)])
    assert not survey.is_large(["s3://bucket/smi", str(tmp_path)])
    with pytest.raises(InputError, match="does not exist"):
        survey.survey([str(tmp_path), str(tmp_path / "absent.csv")])
    records, _ = survey.survey([str(tmp_path), str(tmp_path / "smi_node-00.csv")], workers=1)
    assert len({source.path for source in records.sources}) == len(records.sources)
