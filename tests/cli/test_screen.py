"""What a real terminal gets, and what a pipe gets instead."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from tests.cli.running import ROOT, gdiag, write_run


def in_terminal(*arguments: str, cwd: Path, columns: int, **environment: str) -> str:
    """The output of gdiag on a terminal of `columns` columns and 24 rows."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    clean = {k: v for k, v in os.environ.items() if k not in {"COLUMNS", "LINES", "NO_COLOR"}}
    environment = {
        **clean,
        "TERM": "xterm-256color",
        "PYTHONPATH": str(ROOT),
        "PYTHONIOENCODING": "utf-8",
        **environment,
    }
    command = [sys.executable, "-m", "gdiag", *arguments]
    with subprocess.Popen(command, cwd=cwd, stdout=follower, stderr=follower, env=environment):
        os.close(follower)
        chunks = []
        try:
            while chunk := os.read(leader, 65536):
                chunks.append(chunk)
        except OSError:  # the terminal is gone when the program ends
            pass
    os.close(leader)
    return b"".join(chunks).decode()


def test_a_terminal_gets_colour_and_a_pipe_gets_none(tmp_path: Path) -> None:
    write_run(tmp_path / "run.jsonl")
    assert "\x1b[" in in_terminal("analyze", "run.jsonl", cwd=tmp_path, columns=80)
    assert b"\x1b" not in gdiag("analyze", "run.jsonl", cwd=tmp_path).stdout


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_a_terminal_that_wants_no_colour_gets_none(tmp_path: Path, environment: dict[str, str]) -> None:
    write_run(tmp_path / "run.jsonl")
    assert "\x1b" not in in_terminal("analyze", "run.jsonl", cwd=tmp_path, columns=80, **environment)


def test_a_reader_that_leaves_early_is_no_error(tmp_path: Path) -> None:
    write_run(tmp_path / "run.jsonl")
    command = f"{sys.executable} -m gdiag list | head -n 1"
    done = subprocess.run(
        command, shell=True, cwd=tmp_path, capture_output=True, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False
    )
    assert done.stderr == b""


def test_an_encoding_without_the_signs_still_gets_a_report(tmp_path: Path) -> None:
    write_run(tmp_path / "run.jsonl")
    done = gdiag("analyze", "run.jsonl", cwd=tmp_path, PYTHONIOENCODING="ascii")
    assert done.returncode == 0, done.stderr
    assert b"\\u" not in done.stdout


def test_help_in_a_terminal_keeps_what_stands_in_brackets(tmp_path: Path) -> None:
    text = in_terminal("analyze", "--help", cwd=tmp_path, columns=120)
    assert "COLUMN=NAME" in text
