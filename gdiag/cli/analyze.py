"""gdiag analyze: the main job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from gdiag.cli import options
from gdiag.cli.output import write, written
from gdiag.errors import UsageError

if TYPE_CHECKING:
    from gdiag.model import Report


def analyze(
    paths: options.Paths,
    form: options.Form = "text",
    output: options.Output = None,
    fail_on: Annotated[
        str | None,
        typer.Option(metavar="info|warning|critical|never", help="Exit 1 from this severity on (default warning)."),
    ] = None,
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
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="One line per incident, nothing else.")] = False,
    verbose: Annotated[bool, typer.Option("-v", "--verbose", help="Every finding with all its evidence.")] = False,
) -> None:
    """Say what went wrong in a run, when, where, why most likely, and what to do next.

    Exit code 0: nothing at or above --fail-on; 1: something is; 2: the input or the call cannot be used.
    """
    options.check_form(form)
    from gdiag.analyzers import ANALYZERS
    from gdiag.analyzers.selection import checked, choose
    from gdiag.config import FAIL_ON
    from gdiag.pipeline import diagnose

    said = options.configuration(config)
    limit = fail_on or said.fail_on or "warning"
    if limit not in FAIL_ON:
        raise UsageError(f"--fail-on {limit}: allowed are {', '.join(FAIL_ON)}")
    chosen = choose(ANALYZERS, select or said.select, ignore or said.ignore)
    limits = checked(ANALYZERS, options.thresholds(said, settings))
    report = diagnose(options.records(paths, said, columns, tz, steps), limits, chosen)
    write(written(report, form, output, with_series=with_series, quiet=quiet, verbose=verbose), output)
    raise typer.Exit(_exit_code(report, limit))


def _exit_code(report: Report, limit: str) -> int:
    from gdiag.model import Severity

    return int(limit != "never" and report.worst is not None and report.worst >= Severity[limit.upper()])
