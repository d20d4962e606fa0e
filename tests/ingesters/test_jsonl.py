"""JSONL step logs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gdiag.errors import InputError
from gdiag.ingesters import load


def write(path: Path, rows: list[dict[str, object]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_reads_steps_and_layers(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [
        {"step": i, "train/loss": 3.0 - i, "optim/total_grad_norm": 1.0, "grad/blocks.0.fc.norm": 0.5} for i in range(3)
    ]
    records = load([write(tmp_path / "run.jsonl", rows)])
    assert records.steps["loss"].to_list() == [3.0, 2.0, 1.0]
    assert records.steps["run"].unique().to_list() == ["run"]
    assert records.layers["grad_norm:blocks.0.fc"].to_list() == [0.5] * 3
    assert [(c.layer, c.depth, c.kind) for c in records.layer_columns] == [("blocks.0.fc", 0, "mlp")]
    assert records.sources[0].columns["loss"] == "train/loss"


def test_a_bad_line_is_a_reject(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text('{"step": 0, "loss": NaN}\n{"step": 1, "lo\n{"step": 2, "loss": "inf"}\n')
    records = load([path])
    assert records.rejects["line"].to_list() == [2]
    assert records.steps["loss"].is_nan().to_list() == [True, False]
    assert records.steps["line"].to_list() == [1, 3]


def test_a_request_log_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no training log"):
        load([write(tmp_path / "requests.jsonl", [{"latency_p99": 0.1, "user": "a"}] * 3)])
