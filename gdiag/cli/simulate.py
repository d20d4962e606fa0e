"""gdiag simulate: logs with a known fault."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gdiag.cli.output import write
from gdiag.errors import UsageError


def simulate(
    fault: Annotated[str | None, typer.Argument(metavar="FAULT", help="A name from --list.")] = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", metavar="DIR", help="Folder for the files.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same bytes.")] = 0,
    style: Annotated[str, typer.Option(help="Naming style of the log, see --list.")] = "plain",
    steps: Annotated[int, typer.Option(min=1, help="Training steps.")] = 2000,
    every: Annotated[int, typer.Option(min=1, help="Log every so many steps.")] = 1,
    noise: Annotated[str, typer.Option(help="Noise family of the loss, see --list.")] = "gauss",
    amplitude: Annotated[float | None, typer.Option(metavar="NAT", help="Size of the fault in nats of loss.")] = None,
    gz: Annotated[bool, typer.Option("--gz", help="Compress the files.")] = False,
    listing: Annotated[bool, typer.Option("--list", help="List faults, styles and noise families.")] = False,
) -> None:
    """Write the logs of a simulated run with one known fault, and truth.json, which says what it is."""
    from gdiag.simulate.case import simulate as simulated
    from gdiag.simulate.case import write as write_case
    from gdiag.simulate.noise import NOISES
    from gdiag.simulate.training import Setup

    if listing:
        write(_listing(), None)
        return
    if fault is None or output is None:
        raise UsageError(
            "name a fault and a folder: gdiag simulate spike -o runs/spike (`gdiag simulate --list` shows all)"
        )
    family = next((known for known in NOISES if known == noise), None)
    if family is None:
        raise UsageError(f"--noise {noise}: allowed are {', '.join(NOISES)}")
    case = simulated(fault, Setup(seed, steps, every, style, family, amplitude), gz=gz)
    write_case(case, output)
    write("".join(f"{output / name}\n" for name in (*case.files, "truth.json")), None)


def _listing() -> str:
    from gdiag.simulate.faults import FAULTS
    from gdiag.simulate.noise import NOISES
    from gdiag.simulate.styles import STYLES

    lines = ["faults", *(f"  {fault.name:<24} {fault.summary}" for fault in FAULTS)]
    lines += ["", "styles", "  " + ", ".join(style.name for style in STYLES)]
    return "\n".join([*lines, "", "noise", "  " + ", ".join(NOISES)]) + "\n"
