"""What the step-time analyzers share: the evidence of a slowdown, its place, and words for its parts."""

from __future__ import annotations

from typing import Final

from gdiag.measures.batch_growth import SURE, Growth, growth
from gdiag.measures.run import RunView
from gdiag.measures.slowdowns import Slowdown, StepTimeView
from gdiag.model import Location, Measure, Severity

PART: Final = {
    "data": "data loading", "communication": "communication", "compute": "compute", "mixed": "several parts of the step",
    "unknown": "a part of the step that is not logged",
}  # fmt: skip

WHOLE_PART: Final = 1.1
"""Ratio from which a batch may be behind it: batches grow by whole parts, the smallest of them by about a tenth."""


def place(run: RunView, view: StepTimeView, slow: Slowdown) -> Location:
    """Where a slowdown was seen: file, line, steps and times."""
    last = float(view.times.time[slow.end])
    return run.where(
        view.times.row(slow.start), last_step=int(view.times.step[slow.end]), last_time=last if last == last else None
    )


def by_design(slow: Slowdown) -> bool:
    """Whether more work per step explains at least half of the added time."""
    return slow.load_ratio is not None and slow.load_ratio - 1 >= 0.5 * (slow.ratio - 1)


def grown(run: RunView, view: StepTimeView, slow: Slowdown) -> Growth | None:
    """What the noise says of a larger batch, where nothing logs the work per step; None where a batch is no question.

    Times of single tokens or samples do not grow with the batch, and a time that returns is no plan.
    """
    if slow.load_ratio is not None or view.times.rate or slow.kind == "bump" or slow.ratio < WHOLE_PART:
        return None
    step, start = view.times.step, slow.start
    later = start if slow.kind == "shift" else slow.end - (slow.end - start) // 4
    at = int(step[start]) - 1, int(step[later])
    return growth(run.series("loss"), run.grad_norm, run.series("lr"), *at, slow.ratio)


LITTLE_SECONDS: Final = 60.0
"""Time lost below which what is over is a trifle, whatever its share of a short run."""
LITTLE_SHARE: Final = 0.005
MUCH_SECONDS: Final = 600.0
"""Share of the run's time below which it is one, unless it comes to that many seconds."""


def trifle(view: StepTimeView, lost: float, whole: float, little: float = LITTLE_SECONDS) -> bool:
    """Whether the time lost of the `whole` is worth knowing only; of a throughput, whose seconds are those of one token, by its share."""
    share = lost / max(whole, 1e-300)
    if view.times.rate:
        return share < LITTLE_SHARE
    return lost < little or (share < LITTLE_SHARE and lost < MUCH_SECONDS)


def severity(view: StepTimeView, slow: Slowdown, seen: Growth | None) -> Severity:
    """A note where steps have more to do, as far as that can be told, and where what is over cost next to nothing."""
    planned = by_design(slow) or (seen is not None and seen.verdict == "grown")
    over = slow.kind == "bump" and trifle(view, slow.seconds_lost, float(view.times.seconds.sum()) * view.interval)
    return Severity.INFO if planned or over else Severity.WARNING


def with_batch(slow: Slowdown, seen: Growth | None) -> str:
    """The end of a sentence that says what the batch has to do with it."""
    if by_design(slow):
        return f", with {slow.load_ratio:.3g} times the work per step"
    if seen is None or seen.verdict == "unchanged" or (seen.verdict == "open" and seen.evidence < -1):
        return ""
    if seen.verdict == "open":
        return "; a larger batch or longer sequences would do the same, and no tokens per step are logged"
    told = [
        f"{name} noise falls to {value:.2f} of what it was"
        for name, value in (("loss", seen.loss), ("gradient", seen.grad_norm))
        if value is not None
    ]
    return f", as with a batch that has grown: {' and '.join(told)} ({seen.expected:.2f} due)"


def rises(view: StepTimeView, slow: Slowdown, where: str, verb: str = "rises", falls: str = "falls") -> str:
    """`step time rises by 12.0 % at step 40, from 2 s to 2.24 s`, or the throughput that falls where it is what is logged."""
    unit = view.times.rate.removesuffix("_per_s")
    if not unit:
        return f"step time {verb} by {100 * (slow.ratio - 1):.1f} % {where}, from {slow.before:.4g} s to {slow.after:.4g} s"
    return (
        f"throughput {falls} by {100 * (1 - 1 / slow.ratio):.1f} % {where}, "
        f"from {1 / slow.before:.4g} to {1 / slow.after:.4g} {unit}/s"
    )


def slowest(view: StepTimeView, slow: Slowdown) -> str:
    """`the longest 12.04 s`, or the slowest in tokens or samples per second."""
    unit = view.times.rate.removesuffix("_per_s")
    return f"the slowest at {1 / slow.worst:.4g} {unit}/s" if unit else f"the longest {slow.worst:.4g} s"


def evidence(view: StepTimeView, slow: Slowdown, limit: float, batch: Growth | None = None) -> tuple[Measure, ...]:
    """Figures of a slowdown: ratio, levels, noise, the part that holds the time, what it cost, what the batch has to do with it."""
    rate = view.times.rate
    planned = by_design(slow) or (batch is not None and batch.verdict == "grown")
    unit = f"s/{rate.removesuffix('s_per_s')}" if rate else "s"
    told = [
        Measure("ratio", round(slow.ratio, 4), "", limit),
        Measure("level_before", _level(slow.before, rate), unit),
        Measure("level_after", _level(slow.after, rate), unit),
        Measure("noise", round(100 * view.noise, 2), "%"),
        *(() if rate or planned else (Measure("seconds_lost", round(slow.seconds_lost, 1), "s"),)),
        Measure("share", slow.share),
        *(Measure(f"{name.removesuffix('_time')}_share", round(100 * s, 1), "%") for name, s in slow.shares.items()),
    ]
    if slow.load_ratio is not None and slow.kind in ("shift", "bump", "drift"):
        told.append(Measure("load_ratio", round(slow.load_ratio, 3)))
    if view.times.basis != "logged":
        told.append(Measure("step_time_from", view.times.basis))
    if batch is not None:
        told += [Measure("batch", batch.verdict), Measure("batch_evidence", round(batch.evidence, 2), "nat", SURE)]
        noise = (("loss_noise_ratio", batch.loss), ("grad_noise_ratio", batch.grad_norm))
        told += [
            Measure(name, round(value, 3), "", round(batch.expected, 3)) for name, value in noise if value is not None
        ]
    return tuple(told)


def _level(seconds: float, rate: str) -> float:
    """Rounded: times of single tokens are far below a microsecond."""
    return float(f"{seconds:.5g}") if rate else round(seconds, 5)


def held_by(slow: Slowdown) -> str:
    """The end of a sentence that names the part of the step, empty when no part is logged."""
    if not slow.shares:
        return ""
    if slow.share == "unknown":
        return ", in none of the logged parts of the step"
    return f", {PART[slow.share]} holding {100 * max(slow.shares.values()):.0f} % of the added time"
