"""Finds restarts that lose count of the steps while the model goes on.

What it checks: restarts that count from the beginning with the loss that a trained model had, and leaps of the counter
over which the learning rate, the tokens or the samples seen moved by one log interval only; beside it what begins
again with the counter.

Why it matters: the step sets Adam's bias correction, the schedule, the names of checkpoints and the end of the run. A
counter that starts at zero repeats the warm-up or makes the first updates several times too large, and its checkpoints
overwrite older ones.

What to do: save the step with the optimizer's state and load both; rename the checkpoints of one of the two stretches.
A new stage that counts from zero on purpose is better logged as a run of its own.
"""

from __future__ import annotations

from gdiag.measures.resume_state import CounterLoss
from gdiag.measures.run import RunView
from gdiag.model import Finding, Measure, Severity

CODE = "GD117"
NAME = "step-counter-lost"
NEEDS: tuple[str, ...] = ("steps.loss",)

WORDS = {"lr": "the learning rate", "tokens": "the tokens seen", "samples": "the samples seen"}


def analyze(run: RunView, *, most: int = 5) -> list[Finding]:
    """A finding per place, a warning where the counter begins again. most: places reported."""
    return [_finding(run, seen) for seen in run.counter_losses[:most]]


def _finding(run: RunView, seen: CounterLoss) -> Finding:
    reset = seen.kind == "reset"
    said = (
        f"The count of steps {'begins again at' if reset else 'leaps to'} {seen.step} after {seen.last_step} while the "
        f"loss goes on at {seen.after:.3f} nat where it was {seen.before:.3f}"
    )
    if seen.goes_on:
        said += f", as {_listed(seen.goes_on)} {'do' if seen.goes_on != ('lr',) else 'does'}"
    if seen.begins_again:
        said += f"; with it {_listed(seen.begins_again)} {'begin' if seen.begins_again != ('lr',) else 'begins'} again"
    return Finding(
        CODE, NAME, Severity.WARNING if reset else Severity.INFO, said,
        run.where(seen.row, step=seen.step),
        (
            Measure("kind", f"counter_{seen.kind}"),
            Measure("step_before", seen.last_step, "step"),
            Measure("level_before", seen.before, "nat"),
            Measure("level_after", seen.after, "nat"),
            Measure("level_start", seen.start, "nat"),
            Measure("noise", seen.noise, "nat"),
            Measure("schedule_begins_again", "lr" in seen.begins_again),
        ),
    )  # fmt: skip


def _listed(names: tuple[str, ...]) -> str:
    return " and ".join(WORDS[name] for name in names)
