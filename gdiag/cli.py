"""The command line: the only module that prints, exits and catches; heavy imports stay inside the commands."""

from __future__ import annotations

import typer

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)


@app.callback()
def gdiag() -> None:
    """Reads the logs a training run leaves behind and says what went wrong, when, where, why and what to do."""
