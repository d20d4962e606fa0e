"""Tables with one value a row, and other shapes in which names of splits stand outside of the columns."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from gdiag.ingesters import load

COUNT = 40


def rows(key: str, value: str, *, again: int = 0) -> list[dict[str, object]]:
    steps = [*range(COUNT), *range(COUNT - again, COUNT)]
    clock = [{"step": s, "timestamp": 1.6e9 + i} for i, s in enumerate(steps)]
    train = [
        {**at, key: name, value: (3 - at["step"] / 50) * k}
        for at in clock
        for name, k in (("train/loss", 1), ("lr", 1e-3))
    ]
    return [*train, *({**at, key: "val/loss", value: 3.5} for at in clock[:COUNT:10])]


@pytest.mark.parametrize(
    ("key", "value"), [("tag", "value"), ("key", "value"), ("metric.name", "value"), ("Metric", "metric_value")]
)
@pytest.mark.parametrize("kind", ["csv", "jsonl", "json", "parquet"])
def test_a_value_a_row(tmp_path: Path, kind: str, key: str, value: str) -> None:
    path, found = tmp_path / f"metrics.{kind}", pl.DataFrame(rows(key, value), infer_schema_length=None)
    if kind == "csv":
        found.write_csv(path)
    elif kind == "parquet":
        found.write_parquet(path)
    elif kind == "json":
        path.write_text(json.dumps({"metrics": rows(key, value)}))
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows(key, value)))
    records = load([path])
    assert records.steps["step"].to_list() == [*range(COUNT)]
    assert records.steps["loss"].to_list() == [3 - s / 50 for s in range(COUNT)]
    assert records.steps["lr"].count() == COUNT
    assert records.steps["eval_loss"].count() == 4
    assert records.sources[0].rows == len(rows(key, value))
    assert any("3 metrics side by side" in note for note in records.sources[0].notes)


def test_a_run_that_was_taken_up_keeps_its_rows(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows("tag", "value", again=5)))
    assert load([path]).steps["step"].to_list() == [*range(COUNT), *range(COUNT - 5, COUNT)]


def test_a_context_tells_evaluation(tmp_path: Path) -> None:
    lines = [
        f'ab,loss,"{{""subset"": ""{split}""}}",{i},{x}'
        for split, x in (("train", 2.5), ("val", 2.75))
        for i in range(20)
    ]
    (tmp_path / "aim.csv").write_text("\n".join(["run.hash,metric.name,context,step,value", *lines]) + "\n")
    steps = load([tmp_path / "aim.csv"]).steps
    assert steps["loss"].to_list() == [2.5] * 20
    assert steps["eval_loss"].to_list() == [2.75] * 20


def test_names_that_are_no_metrics_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(
        "step,loss,name,value\n" + "".join(f"{i},{3 - i / 50},loss,{i}\n" for i in range(30))
    )
    steps = load([tmp_path / "t.csv"]).steps
    assert steps["loss"].to_list() == [3 - i / 50 for i in range(30)]


@pytest.mark.parametrize("names", [("train", "eval"), ("learn", "test"), ("training", "valid_1")])
def test_objects_of_splits(tmp_path: Path, names: tuple[str, str]) -> None:
    train, other = [3 - i / 50 for i in range(COUNT)], [3.5 - i / 50 for i in range(COUNT)]
    document = {names[1]: {"logloss": other, "error": other}, names[0]: {"logloss": train, "error": train}}
    (tmp_path / "evals.json").write_text(json.dumps(document))
    steps = load([tmp_path / "evals.json"]).steps
    assert steps["loss"].to_list() == train
    assert steps["eval_loss"].to_list() == other


def test_files_of_splits(tmp_path: Path) -> None:
    for name, level in (("learn_error", 3.0), ("test_error", 3.5)):
        text = "".join(f"{i}\t{level - i / 50}\t0.5\n" for i in range(COUNT))
        (tmp_path / f"{name}.tsv").write_text("iter\tLogloss\tAUC\n" + text)
    (tmp_path / "time_left.tsv").write_text(
        "iter\tPassed\tRemaining\n" + "".join(f"{i}\t{i}\t{9}\n" for i in range(COUNT))
    )
    records = load([tmp_path])
    assert len(records.runs) == 1
    assert records.steps.select("loss", "eval_loss").rows() == [(3 - i / 50, 3.5 - i / 50) for i in range(COUNT)]


def test_minutes_of_an_epoch(tmp_path: Path) -> None:
    lines = [f"{i},{3 - i / 50},{3.5 - i / 50},0:{12 + i % 3}" for i in range(COUNT)]
    (tmp_path / "history.csv").write_text("\n".join(["epoch,train_loss,valid_loss,time", *lines]) + "\n")
    records = load([tmp_path / "history.csv"])
    assert records.steps["step_time"].to_list() == [12.0 + i % 3 for i in range(COUNT)]
    assert records.rejects.height == 0


def test_zeros_that_mlflow_writes_for_nan(tmp_path: Path) -> None:
    path = tmp_path / "metrics.csv"
    lines = [f"loss,{0 if i > 30 else 3 - i / 50},{1600000000000 + i},{i},{int(i > 30)}" for i in range(COUNT)]
    path.write_text("\n".join(["key,value,timestamp,step,is_nan", *lines]))
    loss = load([path]).steps["loss"]
    assert loss.is_nan().sum() == COUNT - 31
    assert loss[30] == 3 - 30 / 50


def test_what_has_no_place_in_the_wide_table_is_told(tmp_path: Path) -> None:
    odd = [
        {"step": s, "timestamp": 1.6e9, "tag": tag, "value": 1.0} for s in range(5) for tag in ("timestamp", "", " ")
    ]
    path = tmp_path / "metrics.csv"
    pl.DataFrame([*rows("tag", "value"), *odd], infer_schema_length=None).write_csv(path)
    records = load([path])
    assert records.steps["loss"].count() == COUNT
    notes = " · ".join(records.sources[0].notes)
    assert "rows without a name for their value, left out: 10" in notes
    assert "values named like a column of the table itself (timestamp), left out: 5" in notes


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_words_among_the_values_cost_none_of_the_numbers(tmp_path: Path, kind: str) -> None:
    words = [{"step": 7, "timestamp": 1.6e9, "tag": "host", "value": "node07"}]
    told = [
        row | {"value": "oops"} if row["tag"] == "train/loss" and row["step"] == 3 else row
        for row in rows("tag", "value")
    ]
    path = tmp_path / f"metrics.{kind}"
    if kind == "csv":
        pl.DataFrame([*told, *words], infer_schema_length=None, strict=False).write_csv(path)
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in [*told, *words]))
    records = load([path])
    assert records.steps["loss"].drop_nulls().to_list() == [3 - s / 50 for s in range(COUNT) if s != 3]
    assert records.steps["lr"].count() == COUNT
    assert records.rejects.select("reason", "text").rows() == [("no number in column train/loss", "oops")]
