"""What trackers leave behind: wandb, TensorBoard, MLflow, Parquet."""

from __future__ import annotations

import json
import math
import sqlite3
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gdiag.errors import InputError
from gdiag.ingesters import load, tfevents, wandb_binary
from gdiag.ingesters.reading import Input, Options
from tests.ingesters import encoders


def wandb(rows: int = 30, nested: bool = False, code: int | None = 0) -> bytes:
    records = [encoders.run_record("proud-sun-1", {"learning_rate": 1e-4, "warmup_iters": 100, "betas": [0.9, 0.95]})]
    for i in range(rows):
        loss = math.nan if i == 7 else 3.0 - i / 50
        records.append(
            encoders.history(
                {
                    "train/loss": loss,
                    "train/global_step": 2 * i,
                    "_step": i,
                    "_timestamp": 1.7e9 + i,
                    "note": "x" * 200,
                },
                nested,
            )
        )
        if i % 10 == 0:
            records.append(
                encoders.stats(
                    1_700_000_000 + i, {"gpu.0.temp": 60.0, "gpu.1.temp": 61.0, "gpu.0.powerWatts": 400.5, "cpu": 5.0}
                )
            )
    return encoders.wandb_file([*records, *([] if code is None else [encoders.exit_record(code)])])


@pytest.mark.parametrize("nested", [False, True])
def test_wandb_binary(tmp_path: Path, nested: bool) -> None:
    (tmp_path / "run-x.wandb").write_bytes(wandb(300, nested))
    records = load([tmp_path / "run-x.wandb"])
    assert records.steps["step"].to_list() == [2 * i for i in range(300)]
    assert records.steps["loss"].is_nan().arg_true().to_list() == [7]
    assert records.runs[0].name == "proud-sun-1"
    assert records.runs[0].exit == "clean"
    assert records.runs[0].config == {"lr": 1e-4, "warmup_steps": 100, "beta1": 0.9, "beta2": 0.95}
    assert records.gpus.height == 60
    assert records.gpus["temperature"].unique().sort().to_list() == [60.0, 61.0]


@pytest.mark.parametrize(("code", "value"), [(None, None), (1, 1.0), (255, 255.0)])
def test_wandb_without_a_clean_exit(tmp_path: Path, code: int | None, value: float | None) -> None:
    (tmp_path / "run-x.wandb").write_bytes(wandb(code=code))
    records = load([tmp_path / "run-x.wandb"])
    assert records.runs[0].exit == ("unknown" if code is None else "abnormal")
    assert records.events.select("kind", "value").rows() == [("exit", value)]


def test_the_console_in_a_wandb_file_says_why_it_ended(tmp_path: Path) -> None:
    said = "Traceback (most recent call last):\n  loss.backward()\nKeyboardInterrupt\n"
    ends = [
        encoders.output_record(said),
        encoders.output_record("Error in sys.excepthook:\n"),
        encoders.exit_record(255),
    ]
    rows = [encoders.history({"loss": 1.0 / (i + 1), "_step": i}) for i in range(5)]
    (tmp_path / "run-x.wandb").write_bytes(encoders.wandb_file([*rows, *ends]))
    assert load([tmp_path / "run-x.wandb"]).events["text"].to_list() == ["exit code 255: KeyboardInterrupt"]


WANDB = wandb(300)


def read_wandb(content: bytes) -> int:
    try:
        reading = wandb_binary.read(Input("x", content[:65536], content=content), Options())
    except InputError:
        return 0
    return 0 if reading.steps is None else reading.steps.height


@settings(max_examples=40, deadline=None)
@given(st.integers(7, len(WANDB)))
def test_a_cut_wandb_file_keeps_every_row_before_the_cut(cut: int) -> None:
    part = WANDB[:cut]
    assert read_wandb(part) >= part.count(b"train/global_step") - 2


@settings(max_examples=40, deadline=None)
@given(st.integers(7, len(WANDB) - 1), st.integers(1, 255))
def test_a_flipped_byte_costs_a_block_at_most(place: int, mask: int) -> None:
    content = bytearray(WANDB)
    content[place] ^= mask
    before = bytes(content[:place]).count(b"train/global_step")
    assert read_wandb(bytes(content)) >= before - 1


def points(steps: range = range(40), start: float = 1.6e9) -> list[tuple[float, int, str, float]]:
    return [
        (start + s, s, tag, value)
        for s in steps
        for tag, value in (("train/loss", 3 - s / 20), ("lr", 0.5), ("train/loss vs samples", 0.0))
    ]


@pytest.mark.parametrize("tensors", [False, True])
def test_tfevents(tmp_path: Path, tensors: bool) -> None:
    path = tmp_path / "events.out.tfevents.1"
    path.write_bytes(encoders.tf_events(points(), tensors))
    records = load([path])
    assert records.steps["step"].to_list() == list(range(40))
    assert records.steps["loss"].to_list() == pytest.approx([3 - s / 20 for s in range(40)])
    assert records.steps["lr"].null_count() == 0
    assert records.steps["time"][0] == 1.6e9


def test_tags_against_samples_are_left_out_by_name_where_steps_stand_beside_them(tmp_path: Path) -> None:
    (tmp_path / "events.out.tfevents.1").write_bytes(encoders.tf_events(points()))
    assert "1 tag against samples left out: the same metrics stand against steps" in load([tmp_path]).sources[0].notes
    alone = [(time, step, "lm loss vs samples", 2.0) for time, step, tag, _ in points() if tag == "lr"]
    (tmp_path / "events.out.tfevents.1").write_bytes(encoders.tf_events(alone))
    assert load([tmp_path]).steps["loss"].to_list() == [2.0] * 40


def test_event_files_of_one_folder_are_one_run(tmp_path: Path) -> None:
    (tmp_path / "events.out.tfevents.2.host").write_bytes(encoders.tf_events(points(range(30, 50), 1.7e9)))
    (tmp_path / "events.out.tfevents.9.host").write_bytes(encoders.tf_events(points(range(40), 1.6e9)))
    records = load([tmp_path])
    assert [run.id for run in records.runs] == ["run"]
    assert records.steps["step"].to_list() == [*range(40), *range(30, 50)]


def test_a_damaged_event_is_a_reject(tmp_path: Path) -> None:
    content = bytearray(encoders.tf_events(points()))
    content[content.index(b"train/loss") + 2] ^= 1
    path = tmp_path / "events.out.tfevents.1"
    path.write_bytes(content)
    records = load([path])
    assert records.rejects.height == 1
    assert records.steps["loss"].count() == 39


EVENTS = encoders.tf_events(points())


@settings(max_examples=40, deadline=None)
@given(st.integers(60, len(EVENTS)))
def test_a_cut_event_file_keeps_every_scalar_before_the_cut(cut: int) -> None:
    content = EVENTS[:cut]
    try:
        reading = tfevents.read(Input("x", content, content=content), Options())
    except InputError:
        assert content.count(b"train/loss") <= 1
        return
    assert reading.steps is not None
    assert reading.steps.height >= content.count(b"lr") - 1


def test_wandb_chart_with_two_runs(tmp_path: Path) -> None:
    names = [f"{run} - train/loss{end}" for run in ("a - b", "Group: c/d") for end in ("", "__MIN", "__MAX")]
    header = ",".join(f'"{n}"' for n in ["Step", *names])
    lines = [f'"{i}","{3 - i}","{3 - i}","{3 - i}","","",""' for i in range(3)] + ['"1","","","","5","4","6"']
    (tmp_path / "wandb_export.csv").write_text("\n".join([header, *lines]) + "\n")
    records = load([tmp_path / "wandb_export.csv"])
    assert [run.id for run in records.runs] == ["a - b", "Group: c/d"]
    assert records.sources[0].rows == 4
    assert records.steps["loss"].to_list() == [3.0, 2.0, 1.0, 5.0]
    assert any("means over several" in note for note in records.sources[0].notes)


def test_wandb_chart_over_time_uses_the_runs_own_steps(tmp_path: Path) -> None:
    names = [f"a - {metric}{end}" for metric in ("_step", "train/loss") for end in ("", "__MIN", "__MAX")]
    lines = [f"{i * 1.5},{i * 10},{i * 10},{i * 10},2,2,2" for i in range(4)]
    (tmp_path / "x.csv").write_text("\n".join([",".join(["Relative Time (Process)", *names]), *lines]))
    records = load([tmp_path / "x.csv"])
    assert records.steps["step"].to_list() == [0, 10, 20, 30]
    assert records.steps["elapsed"].to_list() == [0.0, 1.5, 3.0, 4.5]


def test_wandb_events_are_telemetry(tmp_path: Path) -> None:
    rows = [
        {
            "system.gpu.0.temp": 60 + i,
            "system.gpu.0.gpu": 99.0,
            "system.cpu": 3.0,
            "_timestamp": 1.7e9 + 30 * i,
            "_wandb": True,
        }
        for i in range(4)
    ]
    (tmp_path / "wandb-events.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    gpus = load([tmp_path]).gpus
    assert gpus["temperature"].to_list() == [60.0, 61.0, 62.0, 63.0]
    assert gpus["gpu"].to_list() == [0] * 4


def test_files_of_one_metric_each_are_one_run(tmp_path: Path) -> None:
    for tag, scale in (("train_loss", 2.0), ("lr", 0.1)):
        lines = "".join(f"{1.6e9 + i},{i},{scale}\n" for i in range(5))
        (tmp_path / f"run-.-tag-{tag}.csv").write_text("Wall time,Step,Value\n" + lines)
    records = load([tmp_path])
    assert len(records.runs) == 1
    assert records.steps.select("step", "loss", "lr").rows() == [(i, 2.0, 0.1) for i in range(5)]


EXPORT = "Wall time,Step,Value\n" + "".join(f"{1.6e9 + i},{i},{4 - i / 10}\n" for i in range(20))


@pytest.mark.parametrize(
    ("name", "column", "metric"),
    [
        ("exp1/run-version_0-tag-train_loss.csv", "loss", "train_loss"),
        ("exp1/exp_val_loss.csv", "eval_loss", "exp_val_loss"),
        ("train_loss/run1.csv", "loss", "train_loss"),
        ("loss/val.csv", "eval_loss", "val/loss"),
        ("val/loss.csv", "eval_loss", "val/loss"),
        ("train/loss.csv", "loss", "train/loss"),
        ("grad_norm/events (3).csv", "grad_norm", "grad_norm"),
    ],
)
def test_a_tensorboard_export_is_named_by_its_file_or_folder(
    tmp_path: Path, name: str, column: str, metric: str
) -> None:
    (tmp_path / name).parent.mkdir()
    (tmp_path / name).write_text(EXPORT)
    records = load([tmp_path / name])
    assert records.steps[column].to_list() == [4 - i / 10 for i in range(20)]
    assert records.sources[0].columns[column] == metric


@pytest.mark.parametrize("name", ["exp1/run1.csv", "exp1/val.csv", "exp1/step.csv", "exp1/export (2).csv"])
def test_a_tensorboard_export_without_its_tag_is_refused_or_mapped(tmp_path: Path, name: str) -> None:
    (tmp_path / name).parent.mkdir()
    (tmp_path / name).write_text(EXPORT)
    with pytest.raises(InputError, match=r"neither its name nor its folder's says of what.*--map loss=Value"):
        load([tmp_path / name])
    records = load([tmp_path / name], Options(columns={"loss": "Value"}))
    assert records.steps["loss"].to_list() == [4 - i / 10 for i in range(20)]
    (tmp_path / "exp1/run-.-tag-train_loss.csv").write_text(EXPORT)
    sources = load([tmp_path]).sources
    assert sorted(source.format for source in sources) == ["tensorboard-csv", "unknown"]


def test_mlflow_metric_files(tmp_path: Path) -> None:
    folder = tmp_path / "mlruns" / "0" / "abc" / "metrics"
    folder.mkdir(parents=True)
    for name in ("train_loss", "val_loss"):
        (folder / name).write_text("".join(f"{1_691_411_243_324 + i} {2.5 - i} {i}\n" for i in range(3)))
    records = load([tmp_path])
    assert len(records.runs) == 1
    assert records.steps.select("step", "loss", "eval_loss").rows() == [(i, 2.5 - i, 2.5 - i) for i in range(3)]


def test_trackio_store(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "project.db") as store:
        store.execute("pragma journal_mode=wal")
        store.execute(
            "create table metrics (id integer primary key, timestamp text, run_name text, step integer, metrics text)"
        )
        for step in range(4):
            for run in ("a", "b"):
                text = json.dumps({"train/loss": "NaN" if step == 2 else 2.0 - step})
                store.execute(
                    "insert into metrics (timestamp, run_name, step, metrics) values (?, ?, ?, ?)",
                    (f"2026-01-01T00:00:0{step}", run, step, text),
                )
    store.close()
    records = load([tmp_path])
    assert [run.id for run in records.runs] == ["a", "b"]
    assert records.steps["loss"].is_nan().sum() == 2
    assert records.steps["step"].to_list() == [0, 0, 1, 1, 2, 2, 3, 3]


def test_mlflow_store(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "mlflow.db") as store:
        store.execute(
            "create table metrics (key text, value real, timestamp integer, run_uuid text, step integer, is_nan boolean)"
        )
        rows = [
            (
                "train_loss",
                0.0 if s == 1 else 1.7976931348623157e308 if s == 2 else 3.0,
                1_700_000_000_000 + s,
                "r",
                s,
                s == 1,
            )
            for s in range(3)
        ]
        store.executemany("insert into metrics values (?, ?, ?, ?, ?, ?)", rows)
    store.close()
    assert str(load([tmp_path]).steps["loss"].to_list()) == "[3.0, nan, inf]"


def test_steps_that_an_mlflow_store_holds_again_are_rows(tmp_path: Path) -> None:
    steps = [*range(50), *range(40, 90)]
    with sqlite3.connect(tmp_path / "mlflow.db") as store:
        store.execute(
            "create table metrics (key text, value real, timestamp integer, run_uuid text, step integer, is_nan boolean)"
        )
        rows = [
            (key, float(i), 1_700_000_000_000 + i, "r", s, 0) for i, s in enumerate(steps) for key in ("loss", "lr")
        ]
        store.executemany("insert into metrics values (?, ?, ?, ?, ?, ?)", rows)
    store.close()
    records = load([tmp_path])
    assert records.steps.select("step", "loss", "lr").rows() == [(s, float(i), float(i)) for i, s in enumerate(steps)]


def test_a_store_without_metrics_is_refused(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "x.db") as store:
        store.execute("create table other (a)")
    store.close()
    with pytest.raises(InputError, match="without a table of metrics"):
        load([tmp_path])
    (tmp_path / "x.db").write_bytes((tmp_path / "x.db").read_bytes()[:200])
    with pytest.raises(InputError, match="SQLite"):
        load([tmp_path])


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_columnar_files(tmp_path: Path, kind: str) -> None:
    frame = pl.DataFrame(
        {"_step": [0, 1], "train/loss": [1.5, None], "eval/loss": [None, 1.25], "_timestamp": [1.7e9, 1.7e9 + 1]}
    )
    path = tmp_path / "history"
    if kind == "parquet":
        frame.write_parquet(path)
    else:
        frame.write_ipc(path)
    steps = load([path]).steps
    assert steps.select("step", "loss", "eval_loss").rows() == [(0, 1.5, None), (1, None, 1.25)]
    path.write_bytes(path.read_bytes()[:30])
    with pytest.raises(InputError, match="damaged"):
        load([path])


def test_a_table_of_steps_and_values_is_named_by_its_file(tmp_path: Path) -> None:
    rows = "".join(f"{i},{2 - i / 100}\n" for i in range(40))
    named, bare = tmp_path / "train_loss.csv", tmp_path / "export.csv"
    for path in (named, bare):
        path.write_text(f"Step,Value\n{rows}", encoding="utf-8")
    read = load([named])
    assert (read.sources[0].format, read.steps["loss"].count(), read.steps["loss"][0]) == ("single-metric", 40, 2.0)
    assert load([bare]).sources[0].format == "csv"
    (tmp_path / "cut.csv").write_bytes(named.read_bytes()[:-3])
    (tmp_path / "cut.csv").rename(tmp_path / "val_loss.csv")
    assert load([tmp_path / "val_loss.csv"]).steps["eval_loss"].count() >= 39
