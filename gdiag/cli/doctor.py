"""gdiag doctor: the first command of a newcomer."""

from __future__ import annotations

from gdiag.cli import options
from gdiag.cli.output import write, written


def doctor(
    paths: options.Paths,
    form: options.Form = "text",
    output: options.Output = None,
    config: options.Settings = None,
    columns: options.Map = None,
    tz: options.Zone = None,
) -> None:
    """Say what was recognised, how columns were mapped, which checks can run, and what would unlock the others."""
    options.check_form(form)
    from gdiag.tables.doctor import examine

    said = options.configuration(config)
    write(written(examine(options.records(paths, said, columns, tz, None)), form, output, judged=False), output)
