"""The environment inside nccl-tests JSON is never shown: whole, cut, damaged or mixed, by no command and in no format."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gdiag.cli import main
from tests.ingesters import nccl_formats
from tests.ingesters.nccl_formats import Bench

MARK = "Zq7marker"
ENVIRONMENT = [
    f"API_TOKEN={MARK}1",
    f"PATH=/opt/{MARK}2/bin",
    f"MASTER_ADDR={MARK}3",
    f"NCCL_SOCKET_IFNAME={MARK}4",
    f"EMPTY={MARK}5",
]


def document() -> str:
    whole = json.loads(nccl_formats.document(Bench(sizes=tuple(1 << k for k in range(16, 33)), peak=200.0)))
    return json.dumps(whole | {"env": ENVIRONMENT, "errors": [f"failed with API_TOKEN={MARK}6"]})


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.raises(SystemExit):
        main(list(arguments))
    out, err = capsys.readouterr()
    return out + err


WHOLE = document()
PLACES = {name: WHOLE.index(name) for name in ("env", "nccl_version", "config", "results", "out_of_bounds")}
VARIANTS = {
    "whole": WHOLE,
    "indented": json.dumps(json.loads(WHOLE), indent=2),
    "cut in the environment": WHOLE[: WHOLE.index(f"{MARK}3") + 6],
    "cut after the environment": WHOLE[: PLACES["nccl_version"] + 5],
    "cut in the configuration": WHOLE[: PLACES["config"] + 30],
    "cut in the results": WHOLE[: PLACES["results"] + 900],
    "without a brace": WHOLE[1:],
    "behind text": "# nThread 1 nGpus 8 minBytes 8 maxBytes 8\n" + WHOLE,
    "twice": WHOLE + "\n" + WHOLE,
    "lines cut and mixed": "\n".join(json.dumps(json.loads(WHOLE), indent=1).splitlines()[3:]),
}


@pytest.mark.parametrize("name", VARIANTS)
def test_no_command_shows_it(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bench.json"
    path.write_text(VARIANTS[name])
    for form in ("text", "json", "markdown", "sarif", "html"):
        for command in ("nccl", "analyze"):
            assert MARK not in said(capsys, command, str(path), "--format", form, "-v")
    assert MARK not in said(capsys, "doctor", str(path))
    said(capsys, "convert", str(path), "-o", str(tmp_path / "tables"))
    assert not any(MARK.encode() in file.read_bytes() for file in tmp_path.glob("tables/*"))
