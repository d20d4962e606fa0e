"""A benchmark's figures are unsteady: small messages, the two sides, or repeats.

What it checks
    The share of small messages (up to 64 KiB) that take over three times their median, the difference of in-place and
    out-of-place at large sizes, large messages that take the same time whatever their size, sizes that are slow in two
    cycles or more of `-N`, the spread of equal runs in one file, and single processes that the per-iteration report
    (`-I 1`, JSON) shows to be slower than the others. The first row is warm-up and never judged.

Why it matters
    Jitter in small collectives stalls every rank; two modes apart by a factor are time-outs, retries or a busy host.

What to do
    Repeat with more iterations; look for CPU pinning, interrupt moderation, power saving and other traffic. Two ranks on one
    GPU share it in time slices: give each its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from gdiag.analyzers.alike import Case, grouped
from gdiag.measures.bandwidth import Sweep, shared_gpus
from gdiag.measures.bandwidth_steadiness import floors, jitters, slow_cycles
from gdiag.measures.run import RunView
from gdiag.model import Finding, Measure, Severity
from gdiag.reference.sizes import size_text

CODE = "GD704"
NAME = "latency-jitter"
NEEDS: tuple[str, ...] = ("collectives.busbw",)


def analyze(
    run: RunView, *, small_share: float = 0.2, small_ratio: float = 3.0, sides: float = 0.2, spread: float = 0.2
) -> list[Finding]:
    """small_share and small_ratio: warning limits of slow small messages. sides, spread: info limits, as shares."""
    found = [*grouped(_cases(run, small_share, small_ratio, sides)), *grouped(_floors(run))]
    if "slow_process" in run.facts["key"].unique().to_list():
        found += [f for sweep in run.sweeps for f in _process(run, sweep)]
    return found + list(_spread(run, spread))


def _cases(run: RunView, small_share: float, small_ratio: float, sides: float) -> Iterator[Case]:
    for sweep in run.sweeps:
        if sweep.n == 1:
            continue
        seen, at = jitters(sweep.table), sweep.number
        share, ratio, gap = (float(seen[name][at]) for name in ("small_share", "small_ratio", "sides"))
        if share >= small_share and ratio >= small_ratio:
            yield sweep, ("small",), ratio, partial(_small, run, sweep, share, ratio, (small_share, small_ratio))
        if seen["cycles"][at] >= 4 and (slow := slow_cycles(sweep.rows)):
            yield sweep, ("cycles",), float(len(slow)), partial(_slow, run, sweep, slow)
        if gap > sides:
            yield sweep, ("sides",), gap, partial(_apart, run, sweep, gap, sides)


def _small(run: RunView, sweep: Sweep, share: float, ratio: float, limits: tuple[float, float]) -> Finding:
    text = f"{share:.0%} of small {_name(sweep)} messages take {ratio:.1f} times as long as the others"
    evidence = (Measure("slow_share", round(share, 3), "", limits[0]), Measure("ratio", round(ratio, 2), "", limits[1]))
    return Finding(CODE, NAME, Severity.WARNING, text, run.where(sweep.place()), evidence)


def _slow(run: RunView, sweep: Sweep, slow: tuple[int, ...]) -> Finding:
    sizes = ", ".join(size_text(s) for s in slow[:4])
    text = f"{_name(sweep)} is at least 1.3 times slower than its median in two cycles or more at {sizes}"
    evidence = (Measure("slow_sizes", len(slow), "", 0.0),)
    return Finding(CODE, NAME, Severity.WARNING, text, run.where(sweep.place()), evidence)


def _apart(run: RunView, sweep: Sweep, gap: float, sides: float) -> Finding:
    text = f"in-place and out-of-place {_name(sweep)} differ by {gap:.0%} at large sizes"
    evidence = (Measure("difference", round(gap, 3), "", sides),)
    return Finding(CODE, NAME, Severity.INFO, text, run.where(sweep.place()), evidence)


def _floors(run: RunView) -> Iterator[Case]:
    """Sweeps that wait; ranks that share a GPU wait for each other, which GD705 tells."""
    waiting = [s for s in run.sweeps if s.n != 1 and floors(s.table)["floor"][s.number] > 0]
    shared = set(shared_gpus(run.devices).select("source", "section").iter_rows()) if waiting else set()
    for sweep in waiting:
        if (sweep.source, sweep.section) not in shared:
            seen, at = floors(sweep.table), sweep.number
            floor = float(seen["floor"][at])
            yield sweep, ("floor",), floor, partial(_floor, run, sweep, floor, int(seen["last"][at]))


def _floor(run: RunView, sweep: Sweep, floor: float, last: int) -> Finding:
    text = (
        f"{_name(sweep)} takes {floor / 1e3:.2f} ms for every size up to {size_text(last)}: it waits for a timer or "
        "for retries"
    )
    evidence = (Measure("floor", round(floor, 1), "µs"), Measure("largest", last, "B"))
    return Finding(CODE, NAME, Severity.INFO, text, run.where(sweep.place()), evidence)


def _name(sweep: Sweep) -> str:
    return sweep.collective or "the collective"


def _process(run: RunView, sweep: Sweep) -> Iterator[Finding]:
    """Processes that -I shows to be slower than the others at most sizes: all slow together is no one's fault."""
    for value in sweep.said("slow_process"):
        process, ratio, share = value.split()
        text = f"process {process} takes {ratio} times as long as the median process in {share} measurements of {sweep.collective or 'the collective'}"
        evidence = (Measure("ratio", float(ratio), "", 1.2), Measure("process", int(process)))
        yield Finding(CODE, NAME, Severity.WARNING, text, run.where(sweep.place(), rank=int(process)), evidence)


def _spread(run: RunView, spread: float) -> Iterator[Finding]:
    """Equal runs in one file whose plateaus differ."""
    alike: dict[tuple[object, ...], list[Sweep]] = {}
    for sweep in run.sweeps:
        if sweep.n != 1:
            alike.setdefault((sweep.collective, sweep.n, sweep.host_names, sweep.largest), []).append(sweep)
    for same in alike.values():
        plateaus = np.array([s.plateau for s in same])
        middle = float(np.median(plateaus))
        if len(same) < 3 or middle <= 0 or (np.ptp(plateaus) / middle) <= spread:
            continue
        share = float(np.ptp(plateaus) / middle)
        text = f"{len(same)} equal runs differ by {share:.0%} in their plateau ({plateaus.min():.2f} to {plateaus.max():.2f} GB/s)"
        where = run.where(same[0].place())
        yield Finding(CODE, NAME, Severity.INFO, text, where, (Measure("spread", round(share, 3), "", spread),))
