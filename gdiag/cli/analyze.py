"""gdiag analyze: the main job."""

from __future__ import annotations

from typing import Annotated

import typer

from gdiag.cli import options
from gdiag.cli.output import write, written

MOST_SAMPLES = 500_000
"""GPU samples up to which the tables of `gdiag thermal` stand in the report; a fleet's day has a command of its own."""


def analyze(
    paths: options.Paths,
    form: options.Form = "text",
    output: options.Output = None,
    fail_on: options.FailOn = None,
    select: Annotated[
        list[str] | None, typer.Option(metavar="CHECK", help="Only these: code, beginning of codes, or name.")
    ] = None,
    ignore: Annotated[list[str] | None, typer.Option(metavar="CHECK", help="Not these.")] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="CODE.NAME=VALUE", help="A threshold: GD102.z=8.")
    ] = None,
    config: options.Settings = None,
    columns: options.Map = None,
    tz: options.Zone = None,
    steps: options.Steps = None,
    with_series: Annotated[bool, typer.Option("--with-series", help="Put the points of the plots into JSON.")] = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Say what went wrong in a run, when, where, why most likely, and what to do next.

    Exit code 0: nothing at or above --fail-on; 1: something is; 2: the input or the call cannot be used.
    """
    options.check_form(form, quiet=quiet, verbose=verbose, with_series=with_series)
    from gdiag.analyzers import ANALYZERS
    from gdiag.analyzers.selection import choose
    from gdiag.pipeline import diagnose

    said = options.configuration(config)
    limit = options.fail_limit(fail_on, said)
    chosen = choose(ANALYZERS, select or said.select, ignore or said.ignore)
    limits = options.limits(said, settings, chosen)
    records = options.records(paths, said, columns, tz, steps)
    report = diagnose(records, limits, chosen)
    if 0 < records.gpus.height <= MOST_SAMPLES:
        from gdiag.tables.thermal import with_tables

        report = with_tables(report, records)
    write(written(report, form, output, with_series=with_series, quiet=quiet, verbose=verbose), output)
    raise typer.Exit(options.exit_code(report, limit))
