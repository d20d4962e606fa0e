"""Finds restarts after which the learning-rate scheduler is not where it was.

What it checks: at every restart of the run, the learning rate against the one logged for the same step before (where the
run was rewound) or against the schedule carried on; whether it begins its warm-up anew, stands at an earlier or later
step, was changed, or moves several schedule steps per training step from then on. A warm-up that begins again, and a
rate that moves a whole number of times as fast, are found where no restart is marked as well.

Why it matters: a scheduler that is not saved with the checkpoint repeats the warm-up or holds the rate at a level
that the model has long left; one that is stepped once per rank or micro-batch ends the training early.

What to do: save and load the scheduler's state with the optimizer's; step it once per optimizer step.
"""

from __future__ import annotations

import numpy as np

from gdiag.measures.lr_progress import GONE_SHARE, SMOOTH_LEFT, exhausted
from gdiag.measures.run import RunView
from gdiag.measures.scheduler_state import MISMATCH, Mismatch
from gdiag.model import Finding, Measure, Severity

CODE = "GD306"
NAME = "scheduler-not-restored"
NEEDS: tuple[str, ...] = ("steps.lr",)

WORDS = {
    "restarted": "begins its warm-up again",
    "behind": "stands where it was {shift} steps earlier",
    "ahead": "stands where it should be about {shift} steps later",
    "changed": "differs from the one due there",
    "advanced_twice": "moves {factor:.0f} times as fast as before",
}

REJOINED = 0.05
"""Relative distance within which a rate is the one that was due."""
SLOPE_ROWS = 10
"""Rows before the restart that tell how the plan goes on."""
MIXED = 0.05
"""Share of steps logged with several losses from which rates of several writers may be mixed; a step or two are a restart's."""


def analyze(run: RunView, *, mismatch: float = 0.05) -> list[Finding]:
    """A finding per restart whose learning rate does not continue.

    mismatch: relative difference of the learning rate from the one due.
    """
    found = []
    mixed = run.trajectory.writers > 1 or run.trajectory.several > MIXED
    for seen in run.scheduler_mismatches:
        if mixed and seen.kind == "advanced_twice" and not seen.marked:
            continue  # one writer's schedule turns where the other's goes on
        if _gone_early(run, seen):
            continue
        if seen.kind != "advanced_twice" and abs(seen.after - seen.before) < mismatch * max(seen.before, seen.after):
            continue
        found.append(_finding(run, seen))
    return found


def _finding(run: RunView, seen: Mismatch) -> Finding:
    place = f"After the restart at step {seen.step}" if seen.marked else f"From step {seen.step} on"
    words = WORDS[seen.kind].format(shift=seen.shift, factor=seen.factor or 0.0)
    evidence = [
        Measure("kind", seen.kind),
        Measure("lr_before", seen.before),
        Measure("lr_at_onset", seen.after),
        Measure("at_restart", seen.marked),
        Measure("steps_lost", seen.rewound, "step"),
    ]
    if seen.before > 0 and seen.kind != "advanced_twice":
        evidence.insert(1, Measure("lr_ratio", seen.after / seen.before, limit=1 + MISMATCH))
    if seen.shift is not None:
        evidence.append(Measure("shift", seen.shift, "step"))
    if seen.factor is not None:
        evidence.append(Measure("schedule_steps_per_step", seen.factor, limit=1.8))
    warmed = _warmed_again(run, seen)
    if warmed:
        words += " and goes on where it was, as a warm-up on purpose does"
    return Finding(
        CODE, NAME, Severity.INFO if warmed else Severity.WARNING,
        f"{place} the learning rate {words}" if seen.kind == "advanced_twice"
        else f"{place} the learning rate is {seen.after:.3g} where {seen.before:.3g} is due: it {words}",
        run.where(run.series("lr").finite.row(seen.index), step=seen.step),
        tuple(evidence),
    )  # fmt: skip


def _warmed_again(run: RunView, seen: Mismatch) -> bool:
    """Whether a warm-up that begins again ends at the rate due there, well below the peak: a schedule that was lost climbs
    to its peak. Due is what the rows before it lead to in a straight line, for the plan goes on while the rate warms up."""
    if seen.kind != "restarted":
        return False
    rate = run.series("lr").finite
    falling = np.flatnonzero(np.diff(rate.value[seen.index :]) <= 0)
    if not len(falling) or seen.before >= (1 - REJOINED) * float(rate.value.max()):
        return False
    top = seen.index + int(falling[0])
    before = slice(max(0, seen.index - SLOPE_ROWS), seen.index)
    due = seen.before
    if seen.index >= SLOPE_ROWS and np.ptp(rate.step[before]) > 0:
        slope = np.polyfit(rate.step[before] - seen.step, rate.value[before], 1)[0]
        due = max(0.0, seen.before + float(slope) * float(rate.step[top] - seen.step))
    return bool(abs(float(rate.value[top]) - due) <= REJOINED * seen.before)


def _gone_early(run: RunView, seen: Mismatch) -> bool:
    """Whether a faster fall without a restart stops the loss for a long rest of the run: that is GD303's to say."""
    if seen.kind != "advanced_twice" or seen.marked or run.schedule is None:
        return False
    lr, loss = run.series("lr").finite, run.series("loss")
    return exhausted(run.schedule, lr, loss, share=GONE_SHARE, left=SMOOTH_LEFT) is not None
