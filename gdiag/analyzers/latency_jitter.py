"""A benchmark's figures are unsteady: small messages, the two sides, or repeats.

What it checks
    The share of small messages (up to 64 KiB) that take over three times their median, the difference of in-place and
    out-of-place at large sizes, sizes that are slow in two cycles or more of `-N`, the spread of equal runs in one file, and single
    processes that the per-iteration report (`-I 1`, JSON) shows to be slower than the others.
    The first row is warm-up and never judged.

Why it matters
    Jitter in small collectives stalls every rank; two modes apart by a factor are time-outs, retries or a busy host.

What to do
    Repeat with more iterations; look for CPU pinning, interrupt moderation, power saving and other traffic. Two ranks on one
    GPU share it in time slices: give each its own.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gdiag.analyzers.alike import grouped
from gdiag.measures.bandwidth import Sweep, jitter
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
    unsteady = ((s, f) for s in run.sweeps if s.n != 1 for f in _judge(run, s, small_share, small_ratio, sides))
    found = grouped(unsteady, "ratio", least=False)
    found += [f for sweep in run.sweeps for f in _process(run, sweep)]
    return found + list(_spread(run, spread))


def _judge(run: RunView, sweep: Sweep, small_share: float, small_ratio: float, sides: float) -> Iterator[Finding]:
    seen = jitter(sweep)
    name = sweep.collective or "the collective"

    def finding(severity: Severity, text: str, *evidence: Measure) -> Finding:
        return Finding(CODE, NAME, severity, text, run.where(sweep.place()), evidence)

    if seen.small_share >= small_share and seen.small_ratio >= small_ratio:
        text = (
            f"{seen.small_share:.0%} of small {name} messages take {seen.small_ratio:.1f} times as long as the others"
        )
        yield finding(Severity.WARNING, text, Measure("slow_share", round(seen.small_share, 3), "", small_share),
                      Measure("ratio", round(seen.small_ratio, 2), "", small_ratio))  # fmt: skip
    if seen.slow_cycles:
        sizes = ", ".join(size_text(s) for s in seen.slow_cycles[:4])
        text = f"{name} is at least 1.3 times slower than its median in two cycles or more at {sizes}"
        yield finding(Severity.WARNING, text, Measure("slow_sizes", len(seen.slow_cycles), "", 0.0))
    if seen.sides > sides:
        text = f"in-place and out-of-place {name} differ by {seen.sides:.0%} at large sizes"
        yield finding(Severity.INFO, text, Measure("difference", round(seen.sides, 3), "", sides))


def _process(run: RunView, sweep: Sweep) -> Iterator[Finding]:
    """Processes that -I shows to be slower than the others at most sizes: all slow together is no one's fault."""
    for key, value in sweep.facts:
        if key != "slow_process":
            continue
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
