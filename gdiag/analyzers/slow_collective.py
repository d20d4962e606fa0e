"""Collectives of a training run take longer than they used to.

What it checks
    The time in collectives against its own past: `comm_time` per step, or the single operations of an NCCL inspector log or
    a flight-recorder dump against the usual time of the same operation and size. Where several ranks report, the least
    over the ranks is judged, since a rank that arrives late makes the others wait and waits least itself: that is a
    straggler (GD505). Collectives that time out are a hang (GD009). From `ratio` on, in at least `count` steps or operations or
    for good; below `lost` of the time since it began it is a note.

Why it matters
    Every rank waits in every collective: what the network loses, all GPUs lose.

What to do
    Read the counters of the ports at two moments around the slow stretch (`perfquery`, `ethtool -S`, sysfs) and give them
    with the log: a port whose errors or waits grow there is named. Run nccl-tests on the same hosts, idle and under load.
"""

from __future__ import annotations

import numpy as np

from gdiag.analyzers import timing
from gdiag.measures import slow_steps
from gdiag.measures.clock_alignment import step_at
from gdiag.measures.collective_waits import Waits
from gdiag.measures.run import RunView
from gdiag.measures.slowdowns import Slowdown
from gdiag.measures.telemetry import step_stamps
from gdiag.model import Finding, Location, Measure, Severity
from gdiag.reference.figures import multiple

CODE = "GD707"
NAME = "slow-collective"
NEEDS: tuple[str, ...] = ("steps.comm_time|operations.seconds",)


def analyze(run: RunView, *, ratio: float = 1.5, lost: float = 0.02, count: int = 5) -> list[Finding]:
    """ratio: own time over its usual one. lost: share of the time since the onset. count: slow steps or operations."""
    found = []
    for waits in run.collective_waits:
        for slow in (*waits.view.changes, *waits.view.slow):
            rows = len(slow.rows) or slow.end - slow.start + 1
            if slow.ratio < ratio or rows < count or not slow.certain or timing.by_design(slow):
                continue
            seconds, spent = waits.lost(slow), waits.spent(slow)
            share = seconds / spent if spent else None
            if share is None or share >= lost / 4:
                found.append(_finding(run, waits, slow, seconds, share, ratio, lost))
    return found


def _finding(
    run: RunView, waits: Waits, slow: Slowdown, seconds: float, share: float | None, ratio: float, lost: float
) -> Finding:
    what = "steps" if len(waits.step) else "operations"
    rows = slow.rows if len(slow.rows) else np.arange(slow.start, slow.end + 1)
    names = sorted({waits.names[i] for i in rows}) if waits.names else []
    who = f"of {waits.ranks} ranks alike" if waits.ranks else "with the ranks reduced to one figure"
    before = slow.before * float(np.median(waits.usual[rows]))
    text = f"collectives take {multiple(slow.ratio)} times their usual {before:.4g} s"
    if names:
        text = f"{', '.join(names[:3])} takes {multiple(slow.ratio)} times its usual {before:.4g} s"
    where = _where(run, waits, slow)
    since = f" from step {where.step} on" if where.step is not None else ""
    text += f" in {len(rows)} {what}{since}, {who}"
    if share is not None:
        text += f": {100 * share:.1f} % of the time since"
    evidence = [
        Measure("ratio", round(slow.ratio, 3), "", ratio),
        Measure("level_before", round(before, 6), "s"),
        Measure(f"slow_{what}", len(rows)),
        Measure("longest_burst", max(len(g) for g in slow_steps.bursts(rows)), what[:-1]),
        Measure("seconds_lost", round(seconds, 2), "s"),
        Measure("ranks", waits.ranks),
    ]
    if share is not None:
        evidence.append(Measure("time_share", round(100 * share, 2), "%", 100 * lost))
    severity = Severity.WARNING if share is not None and share >= lost else Severity.INFO
    return Finding(CODE, NAME, severity, text, where, tuple(evidence))


def _where(run: RunView, waits: Waits, slow: Slowdown) -> Location:
    """Steps and times of a slowdown; operations are placed on the steps by their clock."""
    times = waits.times
    first, last = times.row(slow.start), times.row(slow.end)
    until = last["time"] if isinstance(last["time"], float) else None
    if len(waits.step):
        return run.where(first, last_step=int(times.step[slow.end]), last_time=until)
    begin = first.pop("time")
    del first["step"]
    steps: list[int | None] = [None, None]
    if run.step_times is not None and np.isfinite(run.step_times.times.time).sum() >= 2:
        stamps = step_stamps(run.step_times.times)
        steps = [
            step_at(t, stamps, run.step_times.times.step) if isinstance(t, float) else None for t in (begin, until)
        ]
    return run.where(
        first, step=steps[0], last_step=steps[1], host=_host(waits, slow),
        time=begin if isinstance(begin, float) else None, last_time=until,
    )  # fmt: skip


def _host(waits: Waits, slow: Slowdown) -> str | None:
    """The one host that has all slow operations, where others have others."""
    rows = slow.rows if len(slow.rows) else np.arange(slow.start, slow.end + 1)
    mine = {host for i in rows for host in waits.hosts[i]}
    return mine.pop() if len(mine) == 1 and len({h for hosts in waits.hosts for h in hosts}) > 1 else None
