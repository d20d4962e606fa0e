"""A benchmark's own figures contradict each other.

What it checks
    The number of ranks from busbw/algbw against the rank list, size/time against algbw, the printed average against the
    mean of the rows, and bandwidth above what the hardware allows; whether a test stopped with an error. A single
    rank measures no fabric, nor do ranks that share a GPU. CPU-time output, the definitions of before June 2020
    (all_gather, reduce_scatter) and hypercube are no contradiction.

Why it matters
    Output that was cut, edited or mixed, or a binary built without MPI, leads to verdicts about a fabric that was never
    measured.

What to do
    Re-run and keep the whole output. With several copies of one rank each: build nccl-tests with MPI=1.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

from gdiag.analyzers.alike import Case, grouped
from gdiag.measures.bandwidth import Sweep, shared_gpus
from gdiag.measures.bandwidth_steadiness import agreements
from gdiag.measures.fabric_limits import Limit, Said, limit
from gdiag.measures.run import RunView
from gdiag.model import Finding, Measure, Severity

CODE = "GD705"
NAME = "inconsistent-output"
NEEDS: tuple[str, ...] = ("collectives.busbw|failures.value",)
_VICTIMS: Final = (
    "Connection closed", "Connection refused", "socketProgress", "remote process exited", "unhandled system error",
)  # fmt: skip
"""Errors of ranks whose peer went away (hardware.md 6)."""


def analyze(
    run: RunView, *, average: float = 0.005, odd_rows: float = 0.1, nic_gbps: float = 0.0, hosts: int = 0
) -> list[Finding]:
    """average: relative difference of printed and computed mean. odd_rows: share of rows whose time and algbw disagree."""
    said = Said(nic_gbps, hosts=hosts)
    return [*_failed(run), *grouped(_cases(run, average, odd_rows, said)), *_shared(run)]


def _failed(run: RunView) -> Iterator[Finding]:
    """The first failure of each file: what follows it on other ranks is its consequence."""
    failures = run.failures.unique("source", keep="first", maintain_order=True)
    for fact in failures.iter_rows(named=True):
        said = str(fact["value"]).strip()[:200]
        text = f"the test stopped with an error: {said}"
        if any(words in said for words in _VICTIMS):
            text += " (a victim of another rank: look for the host that failed first)"
        where = run.where({"source": fact["source"], "line": fact["line"]})
        yield Finding(CODE, NAME, Severity.WARNING, text, where, (Measure("failure", said),))


def _shared(run: RunView) -> Iterator[Finding]:
    """Test runs whose rank list puts several ranks on one GPU: one finding, by the first."""
    if not run.has("devices.bus_id"):
        return
    several = shared_gpus(run.devices)
    if not several.height:
        return
    first, runs = several.row(0, named=True), several.select("source", "section").n_unique()
    ranks = ", ".join(map(str, first["ranks"][:6])) + (" …" if len(first["ranks"]) > 6 else "")
    more = f", and {several.height - 1} more GPUs likewise" if several.height > runs else ""
    text = (
        f"ranks {ranks} share one GPU (device {first['gpu']} of {first['host']}){more}: they take turns on it, and what "
        "they exchange crosses no link"
    )
    where = run.where({"source": first["source"], "line": first["line"]}, host=first["host"], gpu=first["gpu"])
    yield Finding(CODE, NAME, Severity.INFO, text, where, (Measure("ranks", len(first["ranks"]), "", 1.0),))


def _cases(run: RunView, average: float, odd_rows: float, said: Said) -> Iterator[Case]:
    for sweep in run.sweeps:
        if sweep.n == 1 and sweep.ranks is None and sweep.plateau == 0:
            yield sweep, ("one",), 0.0, partial(_alone, run, sweep)
            continue
        if sweep.ranks is not None and (sweep.listed > sweep.ranks[1] or 1 < sweep.listed < sweep.ranks[0]):
            gap = abs(sweep.listed - sweep.ranks[0])
            yield sweep, ("ranks", sweep.listed > sweep.ranks[1]), float(gap), partial(_ranks, run, sweep)
        seen, at = agreements(sweep.table), sweep.number
        rows, odd, mean = int(seen["rows"][at]), int(seen["odd_rows"][at]), float(seen["mean_busbw"][at])
        if rows >= 3 and odd_rows < odd / rows:
            yield sweep, ("odd",), odd / rows, partial(_odd, run, sweep, odd, rows, odd_rows)
        if sweep.average and abs(mean / sweep.average - 1) > average:
            yield sweep, ("average",), abs(mean / sweep.average - 1), partial(_average, run, sweep, mean)
        held = limit(sweep, said)
        if held is not None and held.legal is not None and sweep.plateau > 1.03 * held.legal:
            yield sweep, ("legal",), sweep.plateau / held.legal, partial(_illegal, run, sweep, held)


def _finding(run: RunView, sweep: Sweep, severity: Severity, text: str, *evidence: Measure) -> Finding:
    return Finding(CODE, NAME, severity, text, run.where(sweep.place()), evidence)


def _alone(run: RunView, sweep: Sweep) -> Finding:
    text = "the test ran on one rank: it says nothing about a fabric"
    return _finding(run, sweep, Severity.INFO, text, Measure("ranks", 1, "", 2.0))


def _ranks(run: RunView, sweep: Sweep) -> Finding:
    assert sweep.ranks is not None
    text = f"the rank list names {sweep.listed} ranks but busbw/algbw fits {_span(sweep.ranks)}: "
    listed = Measure("ranks_listed", sweep.listed)
    if sweep.listed > sweep.ranks[1]:
        text += "file mixed, edited, or not built with MPI"
        return _finding(run, sweep, Severity.WARNING, text, listed, Measure("ranks_measured", sweep.ranks[1]))
    return _finding(
        run, sweep, Severity.INFO, f"{text}the list was cut", listed, Measure("ranks_measured", sweep.ranks[0])
    )


def _odd(run: RunView, sweep: Sweep, odd: int, rows: int, share: float) -> Finding:
    text = f"size/time and algbw disagree in {odd} of {rows} rows: label and measurement do not belong together"
    evidence = Measure("odd_rows", odd, "", share * rows)
    return _finding(run, sweep, Severity.WARNING, text, evidence)


def _average(run: RunView, sweep: Sweep, mean: float) -> Finding:
    text = (
        f"the printed average of {sweep.average:.2f} GB/s is not the mean of the rows ({mean:.2f} GB/s): rows were cut"
    )
    return _finding(run, sweep, Severity.INFO, text, Measure("mean_busbw", round(mean, 3), "GB/s", sweep.average))


def _illegal(run: RunView, sweep: Sweep, held: Limit) -> Finding:
    text = f"{sweep.plateau:.1f} GB/s is more than the {held.legal:.1f} GB/s that {held.source} allows"
    evidence = Measure("busbw", round(sweep.plateau, 2), "GB/s", round(held.legal or 0.0, 1))
    return _finding(run, sweep, Severity.WARNING, text, evidence)


def _span(ranks: tuple[int, int]) -> str:
    return f"{ranks[0]}" if ranks[0] == ranks[1] else f"{ranks[0]}–{ranks[1]}"
