"""The runs of records, one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from gdiag.measures.run import RunView
from gdiag.measures.telemetry import Telemetry
from gdiag.schema import TABLES, Records


def each(records: Records, counted: Telemetry | None = None) -> Iterator[RunView]:
    """A view of every run, each with its own rows alone, so that no measure looks for them among those of thousands.

    `counted` as in RunView. Who keeps no view but the last one keeps the measures of one run in memory.
    """
    if len(records.runs) < 2:
        yield from (RunView(run, records, counted) for run in records.runs)
        return
    tables = {name: getattr(records, name) for name in (*TABLES, "layers")}
    parts = {name: table.partition_by("run", as_dict=True) for name, table in tables.items() if "run" in table.columns}
    for run in records.runs:
        own = {name: those.pop((run.id,), tables[name].clear()) for name, those in parts.items()}
        yield RunView(run, replace(records, runs=(run,), **own), counted)
