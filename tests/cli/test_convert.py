from __future__ import annotations

from pathlib import Path

import polars as pl

from tests.cli.conftest import Run
from tests.cli.running import write_run


def test_what_was_read_comes_out_as_parquet(run: Run, tmp_path: Path) -> None:
    write_run(tmp_path / "run.jsonl", 50)
    done = run("convert", "run.jsonl", "-o", "out")
    assert done.returncode == 0, done.stderr
    frame = pl.read_parquet(tmp_path / "out" / "steps.parquet")
    assert frame["step"].to_list() == list(range(50))
    assert {"loss", "lr"} <= set(frame.columns)


def test_a_folder_that_cannot_be_made_is_one_sentence(run: Run, tmp_path: Path) -> None:
    write_run(tmp_path / "run.jsonl", 50)
    done = run("convert", "run.jsonl", "-o", "run.jsonl")
    assert done.returncode == 2
    assert b"Traceback" not in done.stderr
