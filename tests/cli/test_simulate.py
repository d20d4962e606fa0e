"""gdiag simulate as its users run it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.running import gdiag


def test_writes_a_log_and_its_truth(tmp_path: Path) -> None:
    done = gdiag("simulate", "nan", "-o", "case", "--steps", "200", "--seed", "3", "--style", "csv", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.decode().split() == ["case/metrics.csv", "case/truth.json"]
    truth = json.loads((tmp_path / "case" / "truth.json").read_text())
    assert truth["events"][0]["kind"] == "nan"
    assert ",nan," in (tmp_path / "case" / "metrics.csv").read_text()


def test_lists_faults_styles_and_noise(tmp_path: Path) -> None:
    said = gdiag("simulate", "--list", cwd=tmp_path).stdout.decode()
    for word in ("bad-batch", "thermal-throttling", "megatron", "heavy"):
        assert word in said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), b"name a fault"),
        (("nothing", "-o", "x"), b"no fault 'nothing'"),
        (("spike", "-o", "x", "--noise", "loud"), b"allowed are gauss"),
        (("spike", "-o", "x", "--amplitude", "nan"), b"above 0"),
        (("dead-layer", "-o", "x", "--style", "nanogpt"), b"cannot log"),
    ],
)
def test_refuses_in_one_sentence(tmp_path: Path, arguments: tuple[str, ...], said: bytes) -> None:
    done = gdiag("simulate", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr
    assert b"Traceback" not in done.stderr
