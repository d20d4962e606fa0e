"""One run gives the same incidents, whatever it is written as."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path

import polars as pl
import pytest

from gdiag.pipeline import diagnose, load
from tests.ingesters import encoders
from tests.ingesters.encoders import tf_events
from tests.made_reports import FAULTS, Row, brief, made, report


@pytest.mark.parametrize(("fault", "tensors"), [*((fault, False) for fault in FAULTS), ("step_up", True)])
def test_csv_and_event_files_tell_the_same(fault: str, tensors: bool, tmp_path: Path) -> None:
    rows = made(fault)
    names = list(rows[0])
    lines = [",".join(names), *(",".join(repr(row[name]) for name in names) for row in rows)]
    table = tmp_path / "metrics.csv"
    table.write_text("\n".join(lines) + "\n")
    events = tmp_path / "events.out.tfevents.1"
    points = [(1.6e9, int(row["step"]), f"train/{name}", row[name]) for row in rows for name in names[1:]]
    events.write_bytes(tf_events(points, tensors))
    told = brief(diagnose(load([events])))
    assert told == brief(diagnose(load([table]))) == brief(report(rows, tmp_path))
    assert [pattern for pattern, *_ in told] == [fault] * (fault != "healthy")


def as_text(row: Row) -> dict[str, object]:
    """The row as trackers store it: what is no number as a word."""
    return {name: value if value == value else "NaN" for name, value in row.items()}


def parquet(folder: Path, rows: Sequence[Row]) -> None:
    pl.DataFrame(rows).write_parquet(folder / "history.parquet")


def trackio(folder: Path, rows: Sequence[Row]) -> None:
    with sqlite3.connect(folder / "project.db") as store:
        store.execute("create table metrics (run_name text, step int, timestamp text, metrics text)")
        store.executemany(
            "insert into metrics values ('run', ?, null, ?)",
            [(row["step"], json.dumps({k: v for k, v in as_text(row).items() if k != "step"})) for row in rows],
        )
    store.close()


def wandb(folder: Path, rows: Sequence[Row]) -> None:
    history = [encoders.history({**as_text(row), "_step": i}) for i, row in enumerate(rows)]
    records = [encoders.run_record("run", {}), *history, encoders.exit_record(0)]
    (folder / "run-1.wandb").write_bytes(encoders.wandb_file(records))


def document(folder: Path, rows: Sequence[Row]) -> None:
    (folder / "history.json").write_text(json.dumps(rows))


@pytest.mark.parametrize("write", [parquet, trackio, wandb, document])
@pytest.mark.parametrize("fault", ["nonfinite", "single_spike", "lr_discontinuity"])
def test_stores_of_trackers_tell_the_same(
    fault: str, write: Callable[[Path, Sequence[Row]], None], tmp_path: Path
) -> None:
    rows = made(fault)
    for folder in (tmp_path / "store", tmp_path / "log"):
        folder.mkdir()
    write(tmp_path / "store", rows)
    assert brief(diagnose(load([tmp_path / "store"]))) == brief(report(rows, tmp_path / "log"))
