"""The command line: the only room that prints, exits and catches; heavy imports stay inside the commands."""

from __future__ import annotations

import errno
import os
import sys
from typing import Final

import typer

from gdiag.cli.analyze import analyze
from gdiag.cli.compare import compare
from gdiag.cli.convert import convert
from gdiag.cli.doctor import doctor
from gdiag.cli.explain import explain, listing
from gdiag.cli.nccl import nccl
from gdiag.cli.show import show
from gdiag.cli.simulate import simulate
from gdiag.cli.thermal import thermal
from gdiag.errors import GdiagError
from gdiag.version import VERSION

_FULL: Final = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}
"""What a place says that takes no more."""

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    # Rich help takes twice as long to start; a pipe would see none of it.
    rich_markup_mode="rich" if sys.stdout is not None and sys.stdout.isatty() else None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"gdiag {VERSION}")
        raise typer.Exit


@app.callback()
def gdiag(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Print the version and leave."
    ),
) -> None:
    """Reads the logs a training run leaves behind and says what went wrong, when, where, why and what to do."""


app.command()(analyze)
app.command()(nccl)
app.command()(doctor)
app.command()(thermal)
app.command()(compare)
app.command()(show)
app.command()(explain)
app.command("list")(listing)
app.command()(convert)
app.command()(simulate)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; what the user can correct is one sentence on standard error and exit code 2."""
    try:
        app(arguments)
    except GdiagError as error:
        from gdiag.renderers.words import shown

        typer.echo(f"gdiag: {shown(' '.join(str(error).split()))}", err=True)
        sys.exit(2)
    except OSError as error:
        if error.errno not in _FULL:
            raise
        typer.echo(f"gdiag: the output cannot be written ({error.strerror})", err=True)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.exit(2)
