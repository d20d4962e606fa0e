"""Options that several commands share, and what they mean."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from gdiag.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gdiag.analyzers.analyzer import Analyzer
    from gdiag.config import Config
    from gdiag.model import Report
    from gdiag.schema import Records

Paths = Annotated[
    list[str],
    typer.Argument(
        metavar="PATH...", help="Files, folders, globs, s3:// gs:// az:// https:// addresses, or '-'; read together."
    ),
]
Map = Annotated[list[str] | None, typer.Option("--map", metavar="COLUMN=NAME", help="Name of a column in the files.")]
Zone = Annotated[str | None, typer.Option("--tz", metavar="ZONE", help="Zone of clocks printed without one.")]
Steps = Annotated[str | None, typer.Option("--steps", metavar="A:B", help="Only steps A to B, either may be left out.")]
Settings = Annotated[
    Path | None, typer.Option("--config", metavar="FILE", help="Instead of gdiag.toml or pyproject.toml here.")
]
FailOn = Annotated[
    str | None,
    typer.Option(metavar="info|warning|critical|never", help="Exit 1 from this severity on (default warning)."),
]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="One line per incident, nothing else.")]
Verbose = Annotated[bool, typer.Option("-v", "--verbose", help="Every finding with all its evidence.")]
Output = Annotated[Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write here, not to the screen.")]

FORMATS: Final = ("text", "json", "html", "markdown", "sarif")
Form = Annotated[str, typer.Option("--format", metavar="|".join(FORMATS), help="Form of the report.")]


def check_form(form: str, *, quiet: bool = False, verbose: bool = False, with_series: bool = False) -> None:
    """Refuse a form that no renderer writes, and what it cannot show, before anything is read.

    Raises:
        UsageError: `form` is none of FORMATS, or options contradict each other.
    """
    if form not in FORMATS:
        raise UsageError(f"--format {form}: allowed are {', '.join(FORMATS)}")
    if quiet and verbose:
        raise UsageError("-q and -v contradict each other: give one of them")
    if with_series and form != "json":
        raise UsageError(f"--with-series goes with --format json; as {form} the plots are drawn")


def configuration(path: Path | None) -> Config:
    """The configuration in `path`, else that of the working folder."""
    from gdiag import config

    return config.load(path) if path is not None else config.find(Path())


def fail_limit(given: str | None, config: Config) -> str:
    """The severity from which on the exit code is 1: the option, else the configuration, else warning.

    Raises:
        UsageError: no such severity.
    """
    from gdiag.config import FAIL_ON

    limit = given if given is not None else config.fail_on or "warning"
    if limit not in FAIL_ON:
        raise UsageError(f"--fail-on {limit or repr(limit)}: allowed are {', '.join(FAIL_ON)}")
    return limit


def exit_code(report: Report, limit: str) -> int:
    """0 when nothing is at or above `limit`, else 1."""
    from gdiag.model import Severity

    return int(limit != "never" and report.worst is not None and report.worst >= Severity[limit.upper()])


def records(paths: list[str], config: Config, columns: list[str] | None, tz: str | None, steps: str | None) -> Records:
    """What the files hold, under the options given on the command line and, behind them, the configuration.

    Raises:
        InputError: nothing readable.
        UsageError: an option that cannot be used.
    """
    from gdiag.pipeline import between, load

    said = dict(_pair(text, "--map", "loss=my/metric") for text in columns or [])
    mapped = {**config.map, **said}
    window = _window(steps) if steps is not None else None
    found = load(paths, columns=mapped, tz=zone(tz, config))
    for column, name in said.items():
        if not any(source.columns.get(column) == name for source in found.sources):
            raise UsageError(f"--map {column}={name}: no file has a column of figures called {name!r}")
    return found if window is None else between(found, *window)


def zone(given: str | None, config: Config) -> str | None:
    """The zone of clocks printed without one: the option, else the configuration's."""
    return given if given is not None else config.tz


def limits(
    config: Config, settings: list[str] | None, chosen: Sequence[Analyzer]
) -> dict[str, dict[str, float | int | str | bool]]:
    """Code → threshold → value, checked. The configuration may hold thresholds of any check, `--set` of those that run.

    Raises:
        UsageError: no such check or threshold, a value of another type, or a check that does not run.
    """
    from gdiag.analyzers import ANALYZERS
    from gdiag.analyzers.selection import checked

    run = {analyzer.CODE for analyzer in chosen}
    for text in settings or []:
        own = checked(ANALYZERS, _settings({}, [text]))
        if not run.issuperset(own):
            raise UsageError(
                f"--set {text}: {', '.join(own)} is not among the checks that run: {', '.join(sorted(run))}"
            )
    return checked(ANALYZERS, _settings(config.thresholds, settings))


def _settings(
    held: Mapping[str, Mapping[str, float | int | str | bool]], settings: list[str] | None
) -> dict[str, dict[str, float | int | str | bool]]:
    """Code → threshold → value: what the configuration holds, overridden by each `--set CODE.name=value`."""
    found = {code: dict(values) for code, values in held.items()}
    for text in settings or []:
        path, value = _pair(text, "--set", "GD102.z=8")
        code, dot, name = path.partition(".")
        if not dot:
            raise UsageError(f"--set {text}: no threshold named; write it as GD102.z=8")
        found.setdefault(code, {})[name] = value
    return found


def _pair(text: str, option: str, example: str) -> tuple[str, str]:
    key, sign, value = text.partition("=")
    if not sign or not key.strip() or not value.strip():
        raise UsageError(f"{option} {text}: no value; write it as {option} {example}")
    return key.strip(), value.strip()


def _window(text: str) -> tuple[int | None, int | None]:
    first, colon, last = text.partition(":")
    if not text.strip():
        raise UsageError("--steps is empty; write it as --steps 200:400")
    try:
        low, high = (int(part) if part.strip() else None for part in (first, last if colon else first))
    except ValueError:
        raise UsageError(f"--steps {text}: not two whole numbers; write it as --steps 200:400") from None
    if low is not None and high is not None and low > high:
        raise UsageError(f"--steps {text}: the first step lies after the last")
    return low, high
