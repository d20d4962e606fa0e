"""Benchmark output as analyzers see it."""

from __future__ import annotations

from gdiag.ingesters import nccl_tests
from gdiag.ingesters.assemble import assemble
from gdiag.ingesters.reading import Input, Options
from gdiag.measures.run import RunView


def view(*outputs: str) -> RunView:
    """The run of these nccl-tests outputs, each one file."""
    readings = []
    for number, output in enumerate(outputs):
        data = output.encode()
        readings.append(nccl_tests.read(Input(f"bench{number}.txt", data[:65536], content=data), Options()))
    records = assemble(readings)
    return RunView(records.runs[0], records)
