from __future__ import annotations

import json
from pathlib import Path

import pytest

from gdiag.errors import InputError
from gdiag.ingesters import load, mllog
from tests.ingesters.console_samples import read


def event(key: str, value: object, at: int = 0, **about: object) -> str:
    body = {
        "namespace": "",
        "time_ms": 1745735685698 + at,
        "event_type": "POINT_IN_TIME",
        "key": key,
        "value": value,
        "metadata": about,
    }
    return "  0: :::MLLOG " + json.dumps(body)


LINES = [
    event("submission_benchmark", "llama31_405b"),
    event("global_batch_size", 1152),
    event("opt_base_learning_rate", 8e-05),
    *[
        event("tracked_stats", {"train_step_time": 8.5, "reduced_train_loss": 7.7 - i / 100}, i, step=1152.0 * i)
        for i in range(1, 9)
    ],
    event("tracked_stats", {"throughput": 125.0, "train_step_time": 9.1}, 9, step=4608),
    event("eval_accuracy", 7.6, 10, samples_count=9216),
    event("tracked_stats", {"validation_step_time": 7.4}, 10, step=1152),
    "srun: some other line",
    event("run_stop", None, 11, samples_count=9216, status="success"),
]


def test_series_config_and_exit() -> None:
    reading = read(mllog, "\n".join(LINES) + "\n")
    assert reading.steps is not None
    assert reading.steps["step"].to_list() == [1152 * i for i in range(1, 9)] + [9216]
    assert reading.steps["samples"].to_list() == [1152.0 * i for i in range(1, 9)] + [9216.0]
    assert reading.steps["eval_loss"].to_list()[-1] == 7.6
    assert reading.config["batch_size"] == 1152
    assert reading.config["step_unit"] == "samples or tokens"
    assert reading.exit == "clean"
    assert any("not optimizer steps" in note for note in reading.source.notes)


def test_aborted_and_damaged() -> None:
    lines = [
        *LINES[:-1],
        '  0: :::MLLOG {"namespace": "", "time_ms": 17457',
        event("run_stop", None, 11, status="aborted"),
    ]
    reading = read(mllog, "\n".join(lines) + "\n")
    assert reading.exit == "abnormal"
    assert reading.source.rejected == 1
    assert reading.events is not None
    assert reading.events.filter(kind="exit")["text"].to_list() == ["run_stop: aborted"]


def test_rows_counted_in_another_unit_are_left_out() -> None:
    lines = [event("submission_benchmark", "bert")]
    lines += [event("eval_accuracy", 0.3 + i / 100, i, epoch_num=200000 * i) for i in range(1, 9)]
    lines += [event("tracked_stats", {"loss_scale": 512.0}, 9, step=[2, 700])]
    reading = read(mllog, "\n".join(lines) + "\n")
    assert reading.steps is not None
    assert reading.steps["step"].to_list() == [200000 * i for i in range(1, 9)]
    assert any("accuracy" in note for note in reading.source.notes)


def test_seconds_stay_seconds_where_the_step_counts_samples() -> None:
    lines = [
        event("tracked_stats", {"train_step_time": 8.5, "reduced_train_loss": 7.7}, 8500 * i, step=1152.0 * i)
        for i in range(1, 40)
    ]
    reading = read(mllog, "\n".join(lines) + "\n")
    assert reading.steps is not None
    assert reading.steps["step_time"].to_list() == [8.5] * 39


def test_training_rows_that_the_program_prints_itself_are_read(tmp_path: Path) -> None:
    form = "Iteration: {:6d}, Loss function: {:.5f}, Average Loss: {:.5f}"
    lines = [event("run_start", None), *(form.format(10 * i, 9 - i / 100, 9 - i / 200) for i in range(1, 41))]
    lines += [event("eval_accuracy", 0.2, epoch_num=1), event("run_stop", None, status="success")]
    (tmp_path / "result_0.txt").write_text("\n".join(lines) + "\n")
    records = load([tmp_path / "result_0.txt"])
    assert records.steps.drop_nulls("loss")["step"].to_list() == [10 * i for i in range(1, 41)]
    assert records.runs[0].exit == "clean"
    assert "between its mllog lines" in records.sources[0].notes[-1]


def test_events_without_a_row_are_still_refused(tmp_path: Path) -> None:
    (tmp_path / "result_0.txt").write_text("\n".join([event("run_start", None)] * 9) + "\n")
    with pytest.raises(InputError, match="without a readable step line"):
        load([tmp_path / "result_0.txt"])
