"""What the step-time analyzers share: the evidence of a slowdown, its place, and words for its parts."""

from __future__ import annotations

from typing import Final

from gdiag.measures.run import RunView
from gdiag.measures.slowdowns import Slowdown, StepTimeView
from gdiag.model import Location, Measure

PART: Final = {
    "data": "data loading", "communication": "communication", "compute": "compute", "mixed": "several parts of the step",
    "unknown": "a part of the step that is not logged",
}  # fmt: skip


def place(run: RunView, view: StepTimeView, slow: Slowdown) -> Location:
    """Where a slowdown was seen: file, line, steps and times."""
    last = float(view.times.time[slow.end])
    return run.where(
        view.times.row(slow.start), last_step=int(view.times.step[slow.end]), last_time=last if last == last else None
    )


def by_design(slow: Slowdown) -> bool:
    """Whether more work per step explains at least half of the added time."""
    return slow.load_ratio > 1.02 and slow.load_ratio - 1 >= 0.5 * (slow.ratio - 1)


def evidence(view: StepTimeView, slow: Slowdown, limit: float) -> tuple[Measure, ...]:
    """Figures of a slowdown: ratio, levels, noise, the part that holds the time, and what it cost."""
    told = [
        Measure("ratio", round(slow.ratio, 4), "", limit),
        Measure("level_before", round(slow.before, 5), "s"),
        Measure("level_after", round(slow.after, 5), "s"),
        Measure("noise", round(100 * view.noise, 2), "%"),
        Measure("seconds_lost", round(slow.seconds_lost, 1), "s"),
        Measure("share", slow.share),
        *(Measure(f"{name.removesuffix('_time')}_share", round(100 * s, 1), "%") for name, s in slow.shares.items()),
    ]
    if slow.load_ratio != 1.0:
        told.append(Measure("load_ratio", round(slow.load_ratio, 3)))
    if view.times.basis != "logged":
        told.append(Measure("step_time_from", view.times.basis))
    return tuple(told)


def held_by(slow: Slowdown) -> str:
    """The end of a sentence that names the part of the step, empty when no part is logged."""
    if not slow.shares:
        return ""
    if slow.share == "unknown":
        return ", in none of the logged parts of the step"
    return f", {PART[slow.share]} holding {100 * max(slow.shares.values()):.0f} % of the added time"
