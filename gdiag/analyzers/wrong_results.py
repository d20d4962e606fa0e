"""A collective returned wrong data.

What it checks
    The `#wrong` column and the "Out of bounds values" footer of nccl-tests and rccl-tests. Versions before 2.13 print an
    error size instead of a count there: for them only the footer decides.

Why it matters
    Wrong results corrupt training silently whatever the bandwidth is: every gradient that crosses this path is suspect.

What to do
    Stop using the nodes. Re-run with fewer ranks until the GPU, link or host that is needed for the fault is found; the
    `rank=… #wrong=` lines of a debug build name it. Compare driver, firmware and NCCL versions with a healthy node.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import polars as pl

from gdiag.analyzers.alike import Case, grouped
from gdiag.measures.bandwidth import Sweep
from gdiag.measures.bandwidth_curves import levels
from gdiag.measures.run import RunView
from gdiag.model import Finding, Measure, Severity

CODE = "GD701"
NAME = "wrong-results"
NEEDS: tuple[str, ...] = ("collectives.busbw",)


def analyze(run: RunView, *, elements: float = 1.0) -> list[Finding]:
    """One critical finding per test run with at least `elements` wrong elements or a FAILED footer."""
    return grouped(_cases(run, elements))


def _cases(run: RunView, elements: float) -> Iterator[Case]:
    for sweep in run.sweeps:
        most = float(levels(sweep.table)["wrong"][sweep.number])
        footer = sweep.fact("out_of_bounds") or ""
        if most >= elements or footer.endswith("FAILED"):
            yield sweep, (most >= elements,), most, partial(_finding, run, sweep, elements, footer)


def _finding(run: RunView, sweep: Sweep, elements: float, footer: str) -> Finding:
    wrong = sweep.rows.filter(pl.col("wrong") >= elements)
    name = sweep.collective or "the collective"
    rank = sweep.fact("rank")
    evidence = [Measure("wrong_rows", wrong.height, "", 0.0)]
    if wrong.height:
        most = float(wrong["wrong"].max())  # type: ignore[arg-type]
        evidence += [Measure("wrong_elements", most, "", elements), Measure("size", int(wrong["size"][0]), "B")]
        text = f"{name} returns wrong data in {wrong.height} of {sweep.rows.height} measurements, up to {most:.0f} elements"
    else:
        failed = int(footer.split()[0]) if footer.split()[0].isdigit() else 0
        evidence.append(Measure("failed_tests", failed, "", 0.0))
        text = f"{name} fails its data check: {footer}"
    if rank is not None:
        text += f", reported by rank {rank}"
    where = run.where(
        sweep.place(line=wrong["line"].first() if wrong.height else None), rank=int(rank) if rank is not None else None
    )
    return Finding(CODE, NAME, Severity.CRITICAL, text, where, tuple(evidence))
