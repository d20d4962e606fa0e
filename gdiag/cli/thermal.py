"""gdiag thermal: GPU telemetry and its effect on step time."""

from __future__ import annotations

from typing import Annotated

import typer

from gdiag.cli import options
from gdiag.cli.output import write, written
from gdiag.errors import InputError

CHECKS = ("GD403", "GD404", "GD5", "GD6", "GD711", "GD712")
"""What telemetry, kernel logs, screens of links and step times can show."""

SCREENS = frozenset({"nvidia-smi-nvlink", "ethtool-module"})
"""Formats that show links and no telemetry."""


def thermal(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="GPU telemetry: nvidia-smi, dmon, dcgm, rocm-smi; kernel logs; nvidia-smi topo and nvlink, ethtool -m.")],
    run: Annotated[list[str] | None, typer.Option("--run", metavar="LOG", help="The run's step log, to tell the effect on step time.")] = None,
    form: options.Form = "text",
    output: options.Output = None,
    fail_on: options.FailOn = None,
    settings: Annotated[list[str] | None, typer.Option("--set", metavar="CODE.NAME=VALUE", help="A threshold: GD601.share=0.05.")] = None,
    config: options.Settings = None,
    tz: options.Zone = None,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:  # fmt: skip
    """Say which GPUs throttled, since when, why, and what it cost: per GPU a line, its heat over time, the incidents.

    Exit code 0: nothing at or above --fail-on; 1: something is; 2: the input or the call cannot be used.
    """
    options.check_form(form, quiet=quiet, verbose=verbose)
    from gdiag.analyzers import ANALYZERS
    from gdiag.analyzers.selection import choose
    from gdiag.fleet import survey
    from gdiag.pipeline import diagnose
    from gdiag.tables.thermal import with_tables

    said = options.configuration(config)
    limit = options.fail_limit(fail_on, said)
    chosen = choose(ANALYZERS, CHECKS)
    limits = options.limits(said, settings, chosen)
    paths = [*files, *(run or [])]
    if survey.is_large(files):
        records, counted = survey.survey(files, run or [], tz=options.zone(tz, said))
    else:
        records, counted = options.records(paths, said, None, tz, None), None
    shown = SCREENS & {source.format for source in records.sources}
    if counted is None and not records.gpus.height and not records.events.height and not shown:
        raise InputError(f"{files[0]} holds no GPU telemetry and no kernel log; `gdiag analyze` reads step logs")
    if run and not records.steps.height:
        raise InputError(f"--run {run[0]} holds no step log: a JSONL, CSV or console log with a row per step is read")
    report = with_tables(diagnose(records, limits, chosen, counted), records, counted)
    write(written(report, form, output, quiet=quiet, verbose=verbose), output)
    raise typer.Exit(options.exit_code(report, limit))
