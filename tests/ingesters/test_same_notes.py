"""What is said of a table's columns does not depend on how it is stored."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from gdiag.ingesters import json_chunks, load, splits

Row = dict[str, object]


def told(count: int = 120) -> list[Row]:
    """Training rows with scores of an evaluation between them, columns of no known name, and parts of a loss."""
    rows: list[Row] = []
    for i in range(1, count):
        part = float("nan") if i > 90 else 0.5 + i / 1000
        rows.append(
            {"step": i, "loss": 3 - i / 100, "lr": 1e-3, "step_time": 0.5, "kl_term": part, "bar": float(i % 7)}
        )
        if i % 20 == 0:
            rows.append({"step": i, "bbox_mAP": 0.4 + i / 1000, "step_time": 9.0, "memory": 4000.0})
    return rows


def jsonl(path: Path, rows: list[Row], change: Callable[[object], object] = lambda value: value) -> Path:
    path.write_text("".join(json.dumps({k: change(v) for k, v in row.items()}) + "\n" for row in rows))
    return path


def as_csv(path: Path, rows: list[Row], *, ragged: bool = False) -> Path:
    names = [*dict.fromkeys(name for row in rows for name in row)]
    lines = [",".join(str(row.get(name, "")) for name in names) for row in rows]
    path.write_text("\n".join([",".join(names), *(line.rstrip(",") if ragged else line for line in lines)]) + "\n")
    return path


def parquet(path: Path, rows: list[Row], kind: type[pl.DataType] = pl.Float64) -> Path:
    pl.DataFrame(rows, infer_schema_length=None).cast(kind).write_parquet(path)
    return path


def trackio(path: Path, rows: list[Row]) -> Path:
    with sqlite3.connect(path) as store:
        store.execute("create table metrics (run_name text, step int, timestamp text, metrics text)")
        for row in rows:
            rest = {k: str(v) if v != v else v for k, v in row.items() if k != "step"}
            store.execute("insert into metrics values ('run', ?, null, ?)", (row["step"], json.dumps(rest)))
    store.close()
    return path


WAYS: dict[str, Callable[[Path, list[Row]], Path]] = {
    "run.csv": as_csv,
    "ragged.csv": lambda path, rows: as_csv(path, rows, ragged=True),
    "run.jsonl": jsonl,
    "texts.jsonl": lambda path, rows: jsonl(path, rows, lambda value: value if isinstance(value, int) else str(value)),
    "run.parquet": parquet,
    "texts.parquet": lambda path, rows: parquet(path, rows, pl.String),
    "trackio.db": trackio,
}


@pytest.mark.parametrize("name", WAYS)
def test_what_is_not_used_is_named_in_every_format(tmp_path: Path, name: str) -> None:
    records = load([WAYS[name](tmp_path / name, told())])
    (source,) = records.sources
    unused, wild = [note for note in source.notes if "not" in note]
    assert sorted(unused.removeprefix("3 numeric columns not used: ").split(", ")) == ["bar", "bbox_mAP", "kl_term"]
    assert wild == "not finite in columns that are not used (rows): kl_term (29)"
    assert records.steps.height == 119
    assert records.steps["step_time"].max() == 0.5, "an evaluation's time"
    same = load([as_csv(tmp_path / "same.csv", told())]).steps
    assert_frame_equal(records.steps.drop("line", "run"), same.drop("line", "run"), check_column_order=False)


def test_truth_values_are_no_numbers(tmp_path: Path) -> None:
    (tmp_path / "run.csv").write_text("step,loss,done,x\n" + "".join(f"{i},2.5,False,1\n" for i in range(30)))
    assert "1 numeric column not used: x" in load([tmp_path / "run.csv"]).sources[0].notes


@pytest.mark.parametrize("piece", [600, 1 << 20])
def test_scores_are_those_that_no_row_of_training_fills_anywhere(piece: int) -> None:
    rows: list[Row] = [{"step": i, "loss": 2.0, **({"acc": 0.5} if i > 150 else {})} for i in range(200)]
    rows[40:40] = [{"step": 40, "acc": 0.1, "top5": 0.3}]
    data = "".join(json.dumps(row) + "\n" for row in rows).encode()
    found = json_chunks.read(
        lambda a, b: data[a:b],
        len(data),
        {"step", "loss"}.__contains__,
        "loss".__eq__,
        chunk=piece,
        pieces=(piece // 2,),
    )
    frame, _ = json_chunks.joined(found)
    assert found.unused == {"acc": True, "top5": True}
    assert frame[splits.SCORED].arg_true().to_list() == [40]
    assert [*found.scores] == ["top5"]
