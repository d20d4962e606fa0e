from __future__ import annotations

from pathlib import Path

import polars as pl

from tests.cli.running import gdiag, write_run


def test_what_was_read_comes_out_as_parquet(tmp_path: Path) -> None:
    write_run(tmp_path / "run.jsonl", 50)
    done = gdiag("convert", "run.jsonl", "-o", "out", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    frame = pl.read_parquet(tmp_path / "out" / "steps.parquet")
    assert frame["step"].to_list() == list(range(50))
    assert {"loss", "lr"} <= set(frame.columns)


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    write_run(tmp_path / "run.jsonl", 50)
    done = gdiag("convert", "run.jsonl", "-o", "run.jsonl", cwd=tmp_path)
    assert done.returncode == 2
    assert b"Traceback" not in done.stderr
