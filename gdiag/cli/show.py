"""gdiag show: everything the logs hold around one step."""

from __future__ import annotations

from typing import Annotated

import typer

from gdiag.cli import options
from gdiag.cli.output import write, written


def show(
    paths: options.Paths,
    step: Annotated[int, typer.Option("--step", metavar="N", help="The step, in the log's own numbers.")],
    rows: Annotated[int, typer.Option("--around", min=0, max=50, metavar="ROWS", help="Rows before and after.")] = 2,
    form: options.Form = "text",
    output: options.Output = None,
    config: options.Settings = None,
    columns: options.Map = None,
    tz: options.Zone = None,
) -> None:
    """Show everything the logs hold around one step, and the incidents it is part of."""
    options.check_form(form)
    from gdiag.pipeline import diagnose
    from gdiag.tables.show import around

    records = options.records(paths, options.configuration(config), columns, tz, None)
    report = around(diagnose(records), records, step, rows)
    write(written(report, form, output, judged=False), output)
