"""The command line as its users run it: another process, its output and its exit code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent


def gdiag(*arguments: str, cwd: Path, stdin: bytes = b"", **environment: str) -> subprocess.CompletedProcess[bytes]:
    """Run gdiag in `cwd` without the colours, widths and configuration of whoever runs the tests."""
    # Without byte code every call would compile the whole package.
    unwanted = {"COLUMNS", "NO_COLOR", "FORCE_COLOR", "TERM", "PYTHONDONTWRITEBYTECODE"}
    inherited = {k: v for k, v in os.environ.items() if k not in unwanted}
    return subprocess.run(
        [sys.executable, "-m", "gdiag", *arguments],
        cwd=cwd,
        input=stdin,
        capture_output=True,
        env={**inherited, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8", **environment},
        check=False,
    )


def write_run(path: Path, rows: int = 400, *, nan_from: int | None = None) -> Path:
    """A JSONL log of a smoothly falling loss, NaN from `nan_from` on."""
    lines = []
    for step in range(rows):
        loss = 3.0 - 0.001 * step + 0.01 * ((step * 7919) % 13 - 6) / 6
        bad = nan_from is not None and step >= nan_from
        lines.append(json.dumps({"step": step, "loss": float("nan") if bad else loss, "lr": 1e-3}))
    path.write_text("\n".join(lines) + "\n")
    return path
