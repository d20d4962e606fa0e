from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import gdiag
from tests.cli.running import write_run

ROOT = Path(__file__).parent.parent


def test_the_names_of_the_api_are_there() -> None:
    for name in gdiag.__all__:
        assert getattr(gdiag, name) is not None


def test_load_and_diagnose_are_the_whole_job(tmp_path: Path) -> None:
    report = gdiag.diagnose(gdiag.load([write_run(tmp_path / "run.jsonl")]))
    assert isinstance(report, gdiag.Report)
    assert report.sources[0].rows == 400


def test_importing_the_package_imports_nothing_else() -> None:
    script = "import sys, gdiag; print(sorted(m for m in sys.modules if m.startswith('gdiag.')))"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['gdiag.version']"


def test_the_version_is_said_once() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert project["project"]["version"] == gdiag.__version__


def test_a_report_says_the_schedule_that_the_column_shows(tmp_path: Path) -> None:
    rows = [{"step": i, "loss": 3.0, "lr": 1e-3 * min(1.0, (i + 1) / 20)} for i in range(200)]
    (tmp_path / "run.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    config = gdiag.diagnose(gdiag.load([tmp_path / "run.jsonl"])).runs[0].config
    assert (config["lr_schedule"], config["lr_warmup_steps"], config["lr_peak"]) == ("constant", 19, 1e-3)
