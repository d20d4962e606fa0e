"""Draws the report of one sample log as docs/report.svg, for the README: python tools/readme_picture.py [FILE]."""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path

from gdiag.pipeline import diagnose, load
from gdiag.renderers import terminal

SAMPLE = "sample_logs/overflow-layer.jsonl.gz"
WIDTH = 100


def picture() -> str:
    """The SVG text; it loads no font or anything else from elsewhere."""
    screen = terminal.Screen(WIDTH, color=True)
    console = terminal.console(screen, io.StringIO(), record=True)
    terminal.draw(diagnose(load([SAMPLE])), screen, console)
    drawn = console.export_svg(title=f"gdiag analyze {SAMPLE}", unique_id="gdiag")
    return re.sub(r"\s*@font-face \{.*?\}", "", drawn, flags=re.DOTALL)


if __name__ == "__main__":
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/report.svg")
    target.write_text(picture() + "\n", encoding="utf-8")
