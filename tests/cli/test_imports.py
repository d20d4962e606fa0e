"""Start-up is part of the interface: what each command may import."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.running import gdiag, write_run


def imported(*arguments: str, cwd: Path) -> set[str]:
    """Top-level and second-level names of every module that the command imports."""
    done = gdiag(*arguments, cwd=cwd, PYTHONPROFILEIMPORTTIME="1")
    assert done.returncode == 0, done.stderr
    names = [line.rsplit("|", 1)[-1].strip() for line in done.stderr.decode().splitlines() if line.startswith("import")]
    return {".".join(name.split(".")[:2]) for name in names} | {name.split(".")[0] for name in names}


@pytest.mark.parametrize("argument", ["--help", "--version"])
def test_help_and_version_import_nothing_heavy(tmp_path: Path, argument: str) -> None:
    assert not imported(argument, cwd=tmp_path) & {"polars", "numpy", "pyarrow", "scipy", "rich"}


def test_a_thousand_rows_are_judged_without_the_slow_half_of_scipy(tmp_path: Path) -> None:
    write_run(tmp_path / "run.jsonl", 1000)
    names = imported("analyze", "run.jsonl", cwd=tmp_path)
    assert "polars" in names
    assert not names & {"scipy.stats", "scipy.signal", "pandas"}


def test_a_plain_log_imports_no_module_of_another_format(tmp_path: Path) -> None:
    write_run(tmp_path / "run.jsonl", 1000)
    names = imported("analyze", "run.jsonl", cwd=tmp_path)
    assert not names & {"pyarrow", "sqlite3", "xml", "zstandard", "pandas", "tomllib"}
