"""A benchmark's own figures contradict each other.

What it checks
    The number of ranks from busbw/algbw against the rank list, size/time against algbw, the printed average against the
    mean of the rows, and bandwidth above what the hardware allows. A single rank measures no fabric. CPU-time output and
    the definitions of before June 2020 (all_gather, reduce_scatter) and hypercube are no contradiction. A test that stopped with an error.

Why it matters
    Output that was cut, edited or mixed, or a binary built without MPI, leads to verdicts about a fabric that was never
    measured.

What to do
    Re-run and keep the whole output. With several copies of one rank each: build nccl-tests with MPI=1.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import polars as pl

from gdiag.analyzers.alike import grouped
from gdiag.measures.bandwidth import Sweep, agreement
from gdiag.measures.fabric_limits import Said, limit
from gdiag.measures.run import RunView
from gdiag.model import Finding, Measure, Severity

CODE = "GD705"
NAME = "inconsistent-output"
NEEDS: tuple[str, ...] = ("collectives.busbw|facts.value",)
_VICTIMS: Final = (
    "Connection closed", "Connection refused", "socketProgress", "remote process exited", "unhandled system error",
)  # fmt: skip
"""Errors of ranks whose peer went away (hardware.md 6)."""


def analyze(
    run: RunView, *, average: float = 0.005, odd_rows: float = 0.1, nic_gbps: float = 0.0, hosts: int = 0
) -> list[Finding]:
    """average: relative difference of printed and computed mean. odd_rows: share of rows whose time and algbw disagree."""
    said = Said(nic_gbps, hosts=hosts)
    found = grouped(((s, f) for s in run.sweeps for f in _judge(run, s, average, odd_rows, said)), "mean_busbw")
    return [*_failed(run), *found]


def _failed(run: RunView) -> Iterator[Finding]:
    """The first failure of each file: what follows it on other ranks is its consequence."""
    failures = run.facts.filter(pl.col("scope") == "failure").unique("source", keep="first", maintain_order=True)
    for fact in failures.iter_rows(named=True):
        said = str(fact["value"]).strip()[:200]
        text = f"the test stopped with an error: {said}"
        if any(words in said for words in _VICTIMS):
            text += " (a victim of another rank: look for the host that failed first)"
        where = run.where({"source": fact["source"], "line": fact["line"]})
        yield Finding(CODE, NAME, Severity.WARNING, text, where, (Measure("failure", said),))


def _judge(run: RunView, sweep: Sweep, average: float, odd_rows: float, said: Said) -> Iterator[Finding]:
    def finding(severity: Severity, text: str, *evidence: Measure) -> Finding:
        return Finding(CODE, NAME, severity, text, run.where(sweep.place()), evidence)

    if sweep.n == 1 and sweep.ranks is None and sweep.plateau == 0:
        yield finding(
            Severity.INFO, "the test ran on one rank: it says nothing about a fabric", Measure("ranks", 1, "", 2.0)
        )
        return
    if sweep.ranks is not None and sweep.listed > sweep.ranks[1]:
        text = f"the rank list names {sweep.listed} ranks but busbw/algbw fits {_span(sweep.ranks)}: file mixed, edited, or not built with MPI"
        yield finding(
            Severity.WARNING, text, Measure("ranks_listed", sweep.listed), Measure("ranks_measured", sweep.ranks[1])
        )
    elif sweep.ranks is not None and 1 < sweep.listed < sweep.ranks[0]:
        text = f"the rank list names {sweep.listed} ranks but busbw/algbw fits {_span(sweep.ranks)}: the list was cut"
        yield finding(
            Severity.INFO, text, Measure("ranks_listed", sweep.listed), Measure("ranks_measured", sweep.ranks[0])
        )
    figures = agreement(sweep)
    if figures.rows >= 3 and odd_rows < figures.odd_rows / figures.rows:
        text = f"size/time and algbw disagree in {figures.odd_rows} of {figures.rows} rows: label and measurement do not belong together"
        yield finding(Severity.WARNING, text, Measure("odd_rows", figures.odd_rows, "", odd_rows * figures.rows))
    if figures.average and abs(figures.mean_busbw / figures.average - 1) > average:
        text = f"the printed average of {figures.average:.2f} GB/s is not the mean of the rows ({figures.mean_busbw:.2f} GB/s): rows were cut"
        yield finding(Severity.INFO, text, Measure("mean_busbw", round(figures.mean_busbw, 3), "GB/s", figures.average))
    held = limit(sweep, said)
    if held is not None and held.legal is not None and sweep.plateau > 1.03 * held.legal:
        text = f"{sweep.plateau:.1f} GB/s is more than the {held.legal:.1f} GB/s that {held.source} allows"
        yield finding(Severity.WARNING, text, Measure("busbw", round(sweep.plateau, 2), "GB/s", round(held.legal, 1)))


def _span(ranks: tuple[int, int]) -> str:
    return f"{ranks[0]}" if ranks[0] == ranks[1] else f"{ranks[0]}–{ranks[1]}"
