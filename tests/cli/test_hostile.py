"""Input that nobody meant: never a traceback, never an escape sequence, never "healthy"."""

from __future__ import annotations

import gzip
import os
import random
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.cli.running import ROOT, gdiag, write_run

GARBAGE: dict[str, bytes] = {
    "empty.jsonl": b"",
    "blank.csv": b"\n\n\n",
    "zeros.bin": bytes(10_000),
    "noise.bin": random.Random(1).randbytes(50_000),
    "noise.jsonl": random.Random(2).randbytes(50_000),
    "broken.jsonl.gz": gzip.compress(b'{"step": 1, "loss": 2.0}\n' * 100)[:-20],
    "not.gz": b"\x1f\x8b\x08 no gzip at all",
    "not.zst": b"\x28\xb5\x2f\xfd no zstd at all",
    "long.jsonl": b'{"step": 1, "loss": ' + b"9" * 3_000_000 + b"}\n",
    "deep.jsonl": b'{"step": 1, "loss": ' + b"[" * 100_000 + b"]" * 100_000 + b"}\n",
    "scalar.json": b"42",
    "prose.txt": b"The quick brown fox jumps over the lazy dog.\n" * 100,
    "header.csv": b"step,loss\n",
    "words.csv": b"step,loss\na,b\nc,d\n",
    "utf16.csv": "step,loss\n1,2.0\n2,2.0\n".encode("utf-16"),
    "huge.jsonl": b'{"step": 99999999999999999999999999, "loss": 1e999}\n' * 3,
    "markup.jsonl": b'{"step": 1, "[red]loss[/red]": 2.0, "\\u001b[31m": 3, "loss": 1}\n' * 3,
    "keys.jsonl": b'{"step": 1, "loss": 2.0, "loss": 3.0, "": 1, " ": 2}\n' * 3,
    "negative.csv": b"step,loss\n-5,-1e308\n-4,1e308\n-3,nan\n",
    "times.jsonl": b'{"step": 1, "loss": 2.0, "time": 1e300}\n{"step": 2, "loss": NaN, "time": -1e300}\n',
}


@pytest.mark.parametrize("command", ["analyze", "doctor"])
@pytest.mark.parametrize("name", GARBAGE)
def test_garbage_is_refused_or_read_but_never_a_traceback(run: Run, tmp_path: Path, name: str, command: str) -> None:
    (tmp_path / name).write_bytes(GARBAGE[name])
    done = run(command, name)
    assert b"Traceback" not in done.stderr
    assert done.returncode in (0, 1, 2)
    assert b"\x1b" not in done.stdout + done.stderr
    if done.returncode == 2:
        assert done.stderr.startswith(b"gdiag: ")
        assert done.stderr.count(b"\n") == 1
        assert done.stdout == b""


def test_a_folder_of_garbage_is_refused_and_one_good_file_in_it_is_read(run: Run, tmp_path: Path) -> None:
    for name, content in GARBAGE.items():
        if name.endswith((".bin", ".txt", ".json", ".zst")) or name == "not.gz":
            (tmp_path / name).write_bytes(content)
    assert run("analyze", ".").returncode == 2
    (tmp_path / "good.csv").write_text("step,loss\n" + "".join(f"{k},{3 - k / 100}\n" for k in range(100)))
    done = run("analyze", ".")
    assert done.returncode in (0, 1), done.stderr
    assert b"good.csv" in done.stdout


def test_standard_input_is_read(tmp_path: Path) -> None:
    done = gdiag("analyze", "-", cwd=tmp_path, stdin=b"step,loss\n" + b"".join(b"%d,2.0\n" % k for k in range(50)))
    assert done.returncode in (0, 1), done.stderr
    assert gdiag("analyze", "-", cwd=tmp_path).returncode == 2


def test_a_folder_that_may_not_be_read_is_one_sentence(run: Run, tmp_path: Path) -> None:
    done = run("analyze", str(tmp_path / "a\x1b[31mb"))
    assert done.returncode == 2
    assert b"\x1b" not in done.stderr


@pytest.mark.parametrize("command", ["analyze run.jsonl", "doctor run.jsonl", "list", "explain GD102"])
@pytest.mark.parametrize("place", ["/dev/full", "&-"])
def test_an_output_that_takes_nothing_is_one_sentence(tmp_path: Path, command: str, place: str) -> None:
    write_run(tmp_path / "run.jsonl", 60)
    line = f"{shlex.quote(sys.executable)} -m gdiag {command} >{place}"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(["sh", "-c", line], cwd=tmp_path, capture_output=True, check=False, env=environment)
    assert b"Traceback" not in done.stderr
    assert done.stderr.count(b"\n") <= 1
    assert done.returncode in (0, 2)
