"""Rows of evaluations among those of training: their losses, their own counters, their own times."""

from __future__ import annotations

import json
from pathlib import Path

from gdiag.ingesters import load
from gdiag.schema import Records

EPOCHS, LENGTH, EVERY = 3, 962, 50


def jsonl(path: Path, rows: list[dict[str, object]]) -> Records:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return load([path])


def training(epoch: int, at: int, **more: object) -> dict[str, object]:
    return {
        "epoch": epoch,
        "lr": 0.02,
        "memory": 3483,
        "data_time": 0.01,
        "time": 0.68,
        "loss": 2 - epoch / 4 - at / 1e4,
        **more,
    }


def test_an_evaluation_that_counts_its_own_loader_stands_at_the_end_of_its_epoch(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = []
    for epoch in range(1, EPOCHS + 1):
        rows += [training(epoch, i, mode="train", iter=i) for i in range(EVERY, LENGTH, EVERY)]
        rows.append({"mode": "val", "epoch": epoch, "iter": 200, "lr": 0.02, "loss": 1.5, "bbox_mAP": 0.03})
    records = jsonl(tmp_path / "run.log.json", rows)
    steps = records.steps
    assert steps["step"].is_sorted()
    assert steps.drop_nulls("eval_loss")["step"].to_list() == [950 * epoch for epoch in range(1, EPOCHS + 1)]
    assert any("steps begin again every epoch" in note for note in records.sources[0].notes)


def test_an_evaluation_at_a_step_of_the_run_stays_there(tmp_path: Path) -> None:
    rows = [training(1 + i // 400, i, mode="train", iter=i) for i in range(50, 1000, 50)]
    rows.insert(10, {"mode": "val", "epoch": 2, "iter": 500, "loss": 1.5})
    steps = jsonl(tmp_path / "run.log.json", rows).steps
    assert steps.drop_nulls("eval_loss")["step"].to_list() == [500]


def test_times_of_an_evaluation_that_counts_epochs_are_no_step_times(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = []
    for epoch in range(1, EPOCHS + 1):
        rows += [training(epoch, i, step=(epoch - 1) * LENGTH + i) for i in range(EVERY, LENGTH, EVERY)]
        rows.append({"coco/bbox_mAP": 0.03, "data_time": 0.002, "time": 0.05, "step": epoch})
    steps = jsonl(tmp_path / "scalars.json", rows).steps
    assert steps["step"].is_sorted()
    assert steps["step_time"].unique().to_list() == [0.68]
    assert steps.height == EPOCHS * (LENGTH // EVERY)


def test_times_logged_on_rows_of_their_own_stay(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = []
    for i in range(60):
        rows += [{"step": i, "loss": 2 - i / 100}, {"step": i, "step_time": 0.5}]
    assert jsonl(tmp_path / "run.jsonl", rows).steps["step_time"].to_list() == [0.5] * 60


def test_times_of_steps_between_those_that_log_a_loss_stay(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = []
    for i in range(1, 601):
        rows.append({"step": i, "step_time": 0.5, **({"loss": 2 - i / 1000, "lr": 0.1} if i % 10 == 0 else {})})
        if i % 100 == 5:
            rows.append({"step": i, "step_time": 9.0, "accuracy": 0.5})
    steps = jsonl(tmp_path / "run.jsonl", rows).steps
    assert steps["step_time"].drop_nulls().to_list() == [0.5] * 600


def test_memory_without_a_unit(tmp_path: Path) -> None:
    for figure, size in ((80.5, 80.5 * 2**30), (3483, 3483 * 2**20), (970, 970 * 2**20), (2**33, 2.0**33)):
        rows: list[dict[str, object]] = [{"step": i, "loss": 2.0, "memory": figure} for i in range(9)]
        assert jsonl(tmp_path / "run.jsonl", rows).steps["memory"][0] == size
