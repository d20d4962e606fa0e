"""Finds a learning rate that decayed long before the run was over.

What it checks: where the rate falls to a small share of its peak for good with a long part of the run to go, and the
loss, which was falling before, stops there: it gains less than a quarter of what its descent (in log time) promised.
A planned decay at the end of the run, and a step schedule whose drops the loss still follows, are left alone.

Why it matters: the rest of the run costs as much per step as the beginning and teaches the model next to nothing.

What to do: compare the scheduler's horizon with the run's length (units: steps, micro-batches, epochs, samples); resume
from before the decay with a longer stable phase, and decay in the last 10–20 % only.
"""

from __future__ import annotations

from gdiag.measures.lr_progress import GONE_SHARE, MOST_EXPECTED, SMOOTH_LEFT, Exhausted, exhausted
from gdiag.measures.run import RunView
from gdiag.model import Finding, Measure, Severity

CODE = "GD303"
NAME = "lr-decayed-early"
NEEDS: tuple[str, ...] = ("steps.lr", "steps.loss")


def analyze(
    run: RunView, *, share: float = GONE_SHARE, left: float = 0.15, low_share: float = 0.1, low_left: float = 0.4,
    steps_left: float = 0.6, smooth_left: float = SMOOTH_LEFT,
) -> list[Finding]:  # fmt: skip
    """At most one finding.

    share, left: a rate at or below this share of the peak for at least this part of the run is a warning when the loss
    stopped. low_share, low_left: the same as information. steps_left: part of the run needed for schedules with two or more
    planned drops. smooth_left: the same for curves that never reach a floor.
    """
    schedule = run.schedule
    lr, loss = run.series("lr").finite, run.series("loss")
    if schedule is None or schedule.shape == "restarts":
        return []
    needed = left
    if len(schedule.changes) > 1:
        needed = max(left, steps_left)
    elif schedule.decay is not None and schedule.decay_end is None and not schedule.jumps:
        needed = max(left, smooth_left)
    seen = exhausted(schedule, lr, loss, share=share, left=needed)
    if seen is not None:
        return [_finding(run, seen, Severity.WARNING, share)]
    seen = exhausted(schedule, lr, loss, share=low_share, left=max(needed, low_left))
    return [_finding(run, seen, Severity.INFO, low_share)] if seen is not None else []


def _finding(run: RunView, seen: Exhausted, severity: Severity, share: float) -> Finding:
    lr = run.series("lr").finite
    before, after = float(lr.value[seen.index - 1]), float(lr.value[seen.index])
    return Finding(
        CODE, NAME, severity,
        f"The learning rate is at or below {seen.share:.2g} of its peak from step {seen.step} on, {seen.left:.0%} of the run, and the loss falls by {max(0.0, seen.gain):.3f} nat where its descent promised {seen.expected:.3f}",
        run.where(lr.row(seen.index), step=seen.step, last_step=seen.last_step),
        (
            Measure("lr_share_of_peak", seen.share, limit=share),
            Measure("run_left", seen.left),
            Measure("loss_gain", seen.gain, "nat", limit=MOST_EXPECTED * seen.expected),
            Measure("expected_gain", seen.expected, "nat"),
            Measure("noise", seen.error, "nat"),
            Measure("lr_at_onset", after),
            Measure("lr_ratio", after / before if before > 0 else 0.0),
        ),
    )  # fmt: skip
