"""Golden files: what a command wrote when somebody last looked at it and found it right."""

from __future__ import annotations

from pathlib import Path

import pytest


def matches(request: pytest.FixtureRequest, path: Path, text: str) -> None:
    """Compare `text` with the golden file, or rewrite it under --update-golden."""
    if request.config.getoption("--update-golden"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return
    assert path.is_file(), f"{path} is missing; write it with pytest --update-golden"
    assert text == path.read_text(encoding="utf-8"), f"{path.name} differs; if it should, run pytest --update-golden"
