"""gdiag nccl: is this fabric healthy for what it is, is the data right, and if not, where to look."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gdiag.cli import options
from gdiag.cli.output import write, written
from gdiag.errors import InputError, UsageError

if TYPE_CHECKING:
    from gdiag.schema import Records


def nccl(
    paths: options.Paths,
    form: options.Form = "text",
    output: options.Output = None,
    fail_on: options.FailOn = None,
    expect: Annotated[
        float | None, typer.Option(metavar="GB/S", help="Plateau bus bandwidth that is expected.")
    ] = None,
    nic_gbps: Annotated[
        float | None, typer.Option(metavar="GBIT/S", help="Rate of all network cards of one host, together.")
    ] = None,
    hosts: Annotated[
        int | None, typer.Option(metavar="N", help="Number of hosts, where the output does not list them.")
    ] = None,
    baseline: Annotated[
        str | None, typer.Option(metavar="FILE", help="Output or saved baseline to compare with, size by size.")
    ] = None,
    baseline_save: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write these benchmarks as a baseline, then go on.")
    ] = None,
    config: options.Settings = None,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Judge nccl-tests or rccl-tests output against the hardware, a baseline or --expect.

    Exit code 0: nothing at or above --fail-on; 1: something is; 2: the input or the call cannot be used.
    """
    options.check_form(form, quiet=quiet, verbose=verbose)
    for name, figure in (("--expect", expect), ("--nic-gbps", nic_gbps), ("--hosts", hosts)):
        if figure is not None and not 0 < figure < float("inf"):
            raise UsageError(f"{name} {figure}: it must be a number above 0; leave it out where it is not known")
    from gdiag.analyzers import ANALYZERS
    from gdiag.pipeline import diagnose, held_against

    if baseline is not None and Path(baseline).is_dir():
        raise UsageError(f"--baseline {baseline} is a folder: give the file of a benchmark or of --baseline-save")
    said = options.configuration(config)
    limit = options.fail_limit(fail_on, said)
    records = options.records(paths, said, None, None, None)
    if records.baselines.height and not records.collectives.height:
        raise UsageError(f"{paths[0]} is a saved baseline: give a benchmark's output, and this file as --baseline")
    if not records.collectives.height and not records.facts.height and not records.ports.height:
        raise InputError(f"{paths[0]} holds no benchmark output; nccl-tests and rccl-tests text or JSON is read")
    if not records.collectives.height and not records.ports.height and not _judged_alone(records):
        raise InputError(f"{paths[0]} holds no complete row of a benchmark: nothing in it can be judged")
    if baseline_save is not None:
        _may_write(baseline_save)
        write(_saved(records), baseline_save)
    if baseline is not None:
        records = held_against(records, options.records([baseline], said, None, None, None))
    chosen = [a for a in ANALYZERS if a.CODE.startswith("GD7")]
    limits = options.limits(said, None, chosen)
    given: dict[str, float | None] = {"nic_gbps": nic_gbps, "expect": expect, "hosts": hosts}
    told = {name: figure for name, figure in given.items() if figure is not None}
    limits.setdefault("GD702", {}).update(told)
    limits.setdefault("GD705", {}).update({name: told[name] for name in told if name != "expect"})
    report = diagnose(records, limits, chosen)
    write(written(report, form, output, quiet=quiet, verbose=verbose), output)
    raise typer.Exit(options.exit_code(report, limit))


def _may_write(path: Path) -> None:
    """Refuse to write over what is no saved baseline: a log, most likely.

    Raises:
        UsageError: the file is there and is something else.
    """
    if path.is_file() and path.stat().st_size:
        with path.open("rb") as file:
            if b"gdiag_baseline" not in file.read(256):
                raise UsageError(f"--baseline-save {path}: that file is no saved baseline and would be overwritten")


def _judged_alone(records: Records) -> bool:
    """Whether a test says how it failed, or a switch its state: those are judged without a row."""
    from gdiag.schema import SWITCH

    scopes = records.facts["scope"].drop_nulls().unique().to_list()
    return any(scope == "failure" or scope.startswith(SWITCH) for scope in scopes)


def _saved(records: Records) -> str:
    """The benchmarks as a baseline file.

    Raises:
        UsageError: there is no complete row to save.
    """
    from gdiag.ingesters.bandwidth_baseline import write as text_of
    from gdiag.measures.bandwidth import sweeps
    from gdiag.measures.bandwidth_compare import baseline

    table = baseline(sweeps(records.collectives, records.devices, records.facts))
    if not table.height:
        raise UsageError("--baseline-save: no complete benchmark row is there to save")
    return text_of(table)
