"""Logs without steps that say how a job ended: Slurm .err files, launcher output, tracebacks."""

from __future__ import annotations

import re
from typing import Final

from gdiag.errors import InputError
from gdiag.ingesters import console, evidence
from gdiag.ingesters.reading import Input, Options, Reading
from gdiag.model import Source

FORMAT: Final = "job-log"
_SNIFF: Final = re.compile(
    rb"slurmstepd: error:|srun: error:|cancelled at \d|traceback \(most recent call last\):|death signal|"
    rb"cuda out of memory|oom[-_]kill|exitcode +: -?\d+|fallen off the bus|"
    rb"\bloss (?:is|=) (?:nan|not finite)|\b(?:nan|non-?finite) ?loss"
)


def recognise(given: Input) -> float:
    """By what it says of the end; weaker than any format with steps."""
    return 0.15 if not console.is_binary(given) and _SNIFF.search(console.sample(given).lower()) else 0.0


def read(given: Input, options: Options) -> Reading:
    """Events and the exit.

    Raises:
        InputError: nothing in it is understood.
    """
    table = console.lines_of(given)
    said = evidence.scan(table, table.select("line").clear().with_columns(step=None), options.tz)
    if said.events is None:
        raise InputError(f"{given.path} is a job log that says nothing of steps or of the job's end")
    notes = ("no steps: read for checkpoints, errors and how the job ended",)
    return Reading(Source(given.path, FORMAT, len(said.events), notes=notes), events=said.events, exit=said.exit)
