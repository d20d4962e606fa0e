"""Where a report goes, and what the screen there can show."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from gdiag.errors import UsageError


def write(text: str, path: Path | None) -> None:
    """Write to `path`, or to standard output when None; what its encoding cannot hold is shown escaped.

    Raises:
        UsageError: the file cannot be written.
    """
    if path is not None:
        try:
            path.write_bytes(text.encode("utf-8", "backslashreplace"))
        except OSError as error:
            raise UsageError(f"{path}: cannot be written ({error.strerror})") from None
        return
    encoding = sys.stdout.encoding or "utf-8"
    try:
        sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader (head, less) has seen enough; without this, Python complains once more while it shuts down.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def screen(*, to_file: bool) -> tuple[int, bool]:
    """Columns of the place that text goes to, and whether it shows colour: a terminal, unless NO_COLOR is set."""
    terminal = sys.stdout.isatty() and not to_file
    width = 80 if to_file else shutil.get_terminal_size((80, 24)).columns
    return max(40, min(width, 140)), terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
