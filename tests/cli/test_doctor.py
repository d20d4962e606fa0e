from __future__ import annotations

import json
from pathlib import Path

from tests.cli.conftest import Run


def test_a_newcomer_sees_mapping_values_and_rejected_lines(run: Run, tmp_path: Path) -> None:
    rows = [{"iter": k, "train/loss": 2.0, "grad_norm/a": 1.0, "grad_norm/b": 1.0} for k in range(5)]
    (tmp_path / "log.jsonl").write_text("\n".join([*map(json.dumps, rows), "\x1b[31mbroken"]))
    done = run("doctor", "log.jsonl")
    text = done.stdout.decode()
    assert done.returncode == 0, done.stderr
    for wanted in (
        "log.jsonl: jsonl, 5 rows, 1 rejected",
        "train/loss",
        "grad_norm/a and 1 more",
        "Rejected lines (1)",
    ):
        assert wanted in text
    assert "\x1b" not in text
    assert "nothing found" not in text


def test_the_same_as_json_in_the_envelope_of_every_report(run: Run, tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text('{"step": 1, "loss": 2.0}\n{"step": 2, "loss": 2.0}\n')
    report = json.loads(run("doctor", "log.jsonl", "--format", "json").stdout)
    assert report["schema_version"] == 1
    assert report["tables"][0]["rows"] == [["step", "step", 2], ["loss", "loss", 2]]
    assert report["incidents"] == []


def test_nothing_readable_is_exit_2(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(bytes(range(256)) * 40)
    done = run("doctor", "a.bin")
    assert done.returncode == 2
    assert b"Traceback" not in done.stderr
