"""Where a report goes, and what the screen there can show."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from gdiag.errors import UsageError

if TYPE_CHECKING:
    from gdiag.model import Report

_PLAIN = str.maketrans({"·": "|", "–": "-", "−": "-", "←": "<-", "×": "x", "▲": "^", "…": "...", "°": " deg", "µ": "u"})
"""Signs of the reports where the output's encoding has none of them; braille becomes dots and blanks."""
_PLAIN |= {ord(sign): plain for sign, plain in zip("▁▂▃▄▅▆▇█", "_.-=+*%#", strict=True)}
_PLAIN |= {code: "." if code > 0x2800 else " " for code in range(0x2800, 0x2900)}


def write(text: str, path: Path | None) -> None:
    """Write to `path`, or to standard output when None; what its encoding cannot hold is shown escaped.

    Raises:
        UsageError: the file or standard output cannot be written.
    """
    if path is not None:
        try:
            path.write_bytes(text.encode("utf-8", "backslashreplace"))
        except OSError as error:
            raise UsageError(f"{path}: cannot be written ({error.strerror})") from None
        return
    if sys.stdout is None:
        raise UsageError("there is no standard output to write to; name a file with -o")
    encoding = sys.stdout.encoding or "utf-8"
    if encoding.lower().replace("-", "") not in {"utf8", "utf16"}:
        text = text.translate(_PLAIN)
    try:
        sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader (head, less) has seen enough; without this, Python complains once more while it shuts down.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise UsageError(f"standard output cannot be written ({error.strerror})") from None


def written(
    report: Report, form: str, path: Path | None, *, with_series: bool = False, quiet: bool = False,
    verbose: bool = False, judged: bool = True,
) -> str:  # fmt: skip
    """The report in `form`; text as wide and as colourful as the place it goes to.

    Raises:
        UsageError: SARIF of a report that holds tables and no findings; `path` is one of the files that were read.
    """
    if path is not None and path.exists():
        for source in report.sources:
            if (read := Path(source.path)).exists() and read.samefile(path):
                raise UsageError(
                    f"{path}: is one of the logs that were read and would be overwritten; name another file with -o"
                )
    if form == "json":
        from gdiag.renderers import json_v1

        return json_v1.render(report, with_series=with_series)
    if form == "html":
        from gdiag.renderers import html

        return html.render(report, judged=judged)
    if form == "markdown":
        from gdiag.renderers import markdown

        return markdown.render(report, judged=judged)
    if form == "sarif":
        if not judged:
            raise UsageError("--format sarif holds findings, and this command gives tables; use analyze")
        from gdiag.renderers import sarif

        return sarif.render(report)
    from gdiag.renderers import terminal

    width, color = _screen(to_file=path is not None)
    return terminal.render(report, terminal.Screen(width, color, verbose=verbose, quiet=quiet, judged=judged))


def _screen(*, to_file: bool) -> tuple[int, bool]:
    """Columns of the place that text goes to, and whether it shows colour: a terminal, unless NO_COLOR is set."""
    terminal = not to_file and sys.stdout is not None and sys.stdout.isatty()
    width = 80 if to_file else shutil.get_terminal_size((80, 24)).columns
    return max(40, min(width, 140)), terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
