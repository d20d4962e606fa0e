"""Single steps take far longer than their neighbours.

What it checks
    Steps of at least `ratio` times the running median that stand `z` robust sigmas above it, outside every rhythm. They are
    reported by the part of the step that holds their time; steps that are slow because their values are not finite or
    their update was skipped are set apart. Below `lost` of the time since they began, or fewer than `count`, or
    below `seconds` in all, they are a note; but what one part of the step does again and again to a short run is none.

Why it matters
    Congestion, retransmission, a stalled loader or filesystem, and power brakes show in this way. It takes one slow worker
    to slow down all of them.

What to do
    With communication time high: network tests under load, port counters, other traffic. With data time high: loader
    workers, storage latency. With neither logged: log both. Recompilation and garbage collection look the same.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gdiag.analyzers import timing
from gdiag.measures import slow_steps
from gdiag.measures.run import RunView
from gdiag.measures.segments import Ints
from gdiag.measures.slowdowns import Slowdown, StepTimeView
from gdiag.model import Finding, Measure, Severity
from gdiag.reference.figures import multiple

CODE = "GD504"
NAME = "slow-steps"
NEEDS: tuple[str, ...] = ("steps.step_time|steps.time|steps.elapsed|steps.tokens_per_s|steps.samples_per_s",)


def analyze(
    run: RunView, *, ratio: float = 1.25, lost: float = 0.02, count: int = 5, seconds: float = timing.LITTLE_SECONDS
) -> list[Finding]:
    """At most a finding per part of the step that holds the time.

    ratio: slow over usual, lost: share of the time since, count: steps, seconds: time lost, each from which it is a warning.
    """
    view = run.step_times
    if view is None:
        return []
    found = []
    for slow in view.slow:
        first = slow_steps.onset(slow.rows, len(view.times))
        rows = slow.rows[first:]
        slow = replace(slow, seconds_lost=slow.seconds_lost - float(np.sum(slow.added[:first])))
        spent = float(np.sum(view.times.seconds[rows[0] :]))
        share = slow.seconds_lost / spent if spent > 0 else 0.0
        heavy = len(rows) >= count and share >= lost and slow.bad_values < 0.5 and slow.ratio >= ratio
        # The share of a lone step is large where the log ends soon after it.
        little = share < lost / 4 or len(rows) == 1
        # Logged steps stand for those between them, which cost as much on average.
        whole = float(view.times.seconds.sum()) * view.interval
        least = 0.0 if _comes_again(slow, rows, len(view.times.seconds)) else seconds
        heavy = heavy and not timing.trifle(view, slow.seconds_lost * view.interval, whole, least)
        if not heavy and little and slow.worst < 2 * slow.before:
            continue
        found.append(_finding(run, view, slow, rows, share, heavy, lost))
    return found


BURSTS, TO_THE_END = 20, 0.8
"""Bursts of slow steps, and the share of the run up to which they reach, from which a longer run would lose as large a share."""


def _comes_again(slow: Slowdown, rows: Ints, count: int) -> bool:
    """Whether what one logged part of the step holds comes back again and again until the run ends."""
    known = slow.share not in {"mixed", "unknown"} and bool(slow.shares)
    return known and len(slow_steps.bursts(rows)) >= BURSTS and int(rows[-1]) >= TO_THE_END * count


def _finding(
    run: RunView, view: StepTimeView, slow: Slowdown, rows: Ints, share: float, heavy: bool, lost: float
) -> Finding:
    times = view.times
    groups = slow_steps.bursts(rows)
    longest = max(len(g) for g in groups)
    last = float(times.time[rows[-1]])
    cause = timing.held_by(slow)
    if slow.bad_values >= 0.5:
        cause = ", their values not finite or their updates skipped"
    who, whose = (
        (f"Step {times.step[rows[0]]} takes", "its")
        if len(rows) == 1
        else (f"{len(rows)} steps from step {times.step[rows[0]]} on take", "their")
    )
    where = run.where(
        times.row(int(rows[0])), last_step=int(times.step[rows[-1]]), last_time=last if last == last else None
    )
    return Finding(
        CODE, NAME, Severity.WARNING if heavy else Severity.INFO,
        f"{who} {multiple(slow.ratio)} times as long as {whose} neighbours, "
        f"{timing.slowest(view, slow)}{cause}: {100 * share:.1f} % of the time since",
        where,
        (
            *timing.evidence(view, slow, 1.25),
            Measure("slow_steps", len(rows)),
            Measure("bursts", len(groups)),
            Measure("longest_burst", longest, "step"),
            Measure("worst_ratio", round(slow.worst / slow.before, 2)),
            Measure("time_share", round(100 * share, 2), "%", 100 * lost),
            Measure("nonfinite_share", round(100 * slow.bad_values, 1), "%"),
        ),
    )  # fmt: skip
