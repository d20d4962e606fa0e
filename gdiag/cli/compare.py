"""gdiag compare: two runs beside each other."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from gdiag.cli import options
from gdiag.cli.output import write, written


def compare(
    a: Annotated[str, typer.Argument(metavar="A", help="Files of the first run: a file, folder or glob.")],
    b: Annotated[str, typer.Argument(metavar="B", help="Files of the second run.")],
    form: options.Form = "text",
    output: options.Output = None,
    config: options.Settings = None,
    columns: options.Map = None,
    tz: options.Zone = None,
    steps: options.Steps = None,
) -> None:
    """Compare two runs (seeds, before and after, small and large): what differs, and since which step."""
    options.check_form(form)
    from gdiag.pipeline import diagnose
    from gdiag.tables.compare import compare as compared

    said = options.configuration(config)
    sides = [options.records([path], said, columns, tz, steps) for path in (a, b)]
    one, two = ((diagnose(records), records) for records in sides)
    report = compared(one, two)
    # As text the table of faults says it all; the incidents in full are for machines and for `analyze`.
    shown = report if form == "json" else replace(report, incidents=(), findings=())
    write(written(shown, form, output, judged=False), output)
