"""One rank (or all ranks of a host) is slower than the others.

What it checks
    Compute time per rank against the median of the ranks in blocks of steps; without it, the time that a rank does not
    wait in collectives (the slow rank waits least), without that, step time. From `ratio` on over at least five blocks, and
    slowest far more often than chance; a rank that holds nearly all of the single slow times; a rank that becomes the
    slowest in nearly every step is named from 4 % on. Slow ranks whose numbers fill one host are one finding.

Why it matters
    In synchronous training every rank pays for the slowest. A straggler costs as much as if all GPUs had slowed down:
    BLOOM lost 5.7 % of its step time to one slow GPU whose own benchmark was only 2.5 % worse.

What to do
    Compare clocks, temperature, PCIe and NVLink state of the rank's GPU with its peers, and the CPU load of its host;
    swap the rank to another node: a slowness that stays with the node is hardware, one that stays with the rank is the
    work it was given (longest sequences, a heavier pipeline stage).
"""

from __future__ import annotations

import math

from gdiag.measures.run import RunView
from gdiag.measures.stragglers import Straggler
from gdiag.model import Finding, Measure, Severity

CODE = "GD505"
NAME = "straggler"
NEEDS: tuple[str, ...] = ("steps.rank", "steps.compute_time|steps.comm_time|steps.step_time")

_HOST_SIZES = (8, 4, 16, 2)


def analyze(run: RunView, *, ratio: float = 1.1, slowest: float = 0.5, always: float = 0.9) -> list[Finding]:
    """ratio: slower than the others by this factor, and the slowest in at least the share `slowest` of the steps.
    always: from this share on, a factor of 1.04 is enough, since chance would not pick the same rank."""
    found = [
        s for s in run.stragglers
        if (s.ratio >= ratio and (s.slowest_share >= slowest or len(run.stragglers) > 1))
        or (s.ratio >= ratio and s.share < 1)
        or (s.slowest_share >= always and s.chance <= 0.5 and not s.from_start and ratio <= 1.1)
    ]  # fmt: skip
    return [_finding(run, group, ratio) for group in _by_host(found)]


def _by_host(found: list[Straggler]) -> list[list[Straggler]]:
    """Slow ranks that fill the ranks of one host (consecutive numbers of a usual host size) together, others alone."""
    ranks = sorted(s.rank for s in found)
    for size in _HOST_SIZES:
        if len(ranks) == size and size > 1 and ranks[0] % size == 0 and ranks[-1] - ranks[0] == size - 1:
            return [sorted(found, key=lambda s: s.rank)]
    return [[s] for s in found]


def _finding(run: RunView, group: list[Straggler], limit: float) -> Finding:
    worst = max(group, key=lambda s: s.ratio)
    step, last = min(s.step for s in group), max(s.last_step for s in group)
    stamps = run.series("time")
    who = (
        f"rank {worst.rank} is"
        if len(group) == 1
        else f"ranks {group[0].rank}–{group[-1].rank}, the ranks of one host, are"
    )
    how = {
        "compute time": "computes", "collective wait": "is busy outside collectives", "step time": "takes",
    }[worst.told_by]  # fmt: skip
    it = "it" if len(group) == 1 else f"rank {worst.rank}"
    since = "from the first step on" if worst.from_start else f"from step {step} on"
    often = f" in {100 * worst.share:.0f} % of the steps" if worst.share < 1 else ""
    evidence = [
        Measure("ratio", round(worst.ratio, 4), "", limit),
        Measure("slow_share", round(100 * worst.share, 1), "%"),
        Measure("slowest_share", round(100 * worst.slowest_share, 1), "%", round(100 * worst.chance, 1)),
        Measure("time_of_rank", round(worst.own, 5), "s"), Measure("time_of_others", round(worst.others, 5), "s"),
        Measure("told_by", worst.told_by), Measure("from_start", worst.from_start),
        Measure("ranks", len(run.rank_times.ranks) if run.rank_times is not None else 0, ""),
        Measure("slow_ranks", ", ".join(str(s.rank) for s in group)), Measure("one_host", len(group) > 1),
    ]  # fmt: skip
    if not math.isnan(worst.before):
        evidence.append(Measure("ratio_before", round(worst.before, 4)))
    return Finding(
        CODE, NAME, Severity.WARNING,
        f"{who} slower than the others{often} {since}: {it} {how} {worst.own:.4g} s where the others take {worst.others:.4g} s, "
        f"and is the slowest in {100 * worst.slowest_share:.0f} % of the steps",
        run.where(step=step, last_step=last, rank=worst.rank if len(group) == 1 else group[0].rank, time=stamps.at(step), last_time=stamps.at(last)),
        tuple(evidence),
    )  # fmt: skip
