"""The run was restarted.

What it checks: steps that go back, or begin again from the start, and where a second file goes on; restarts from one and
the same step, one after the other, are a crash loop and a warning.

Why it matters: a clean resume costs the steps trained twice and the pause. The later rows are used for every step; what
was taken back is judged as well and marked so. A run that comes back to one step again and again makes no progress.

What to do: nothing, unless restarts are frequent (look at the exits, GD008) or the loss differs after one (GD109). In a
crash loop compare where the attempts end: at one step it is the batch or the code, at different ones a machine.
"""

from __future__ import annotations

from itertools import groupby

from gdiag.measures.run import RunView
from gdiag.measures.segments import interval
from gdiag.measures.trajectory import Restart
from gdiag.model import Finding, Measure, Severity

CODE = "GD003"
NAME = "restart"
NEEDS: tuple[str, ...] = ("steps.step",)


SAME_ROWS = 2
"""Logged rows within which attempts end at the same step."""


def analyze(run: RunView, *, loop: int = 3, most: int = 10) -> list[Finding]:
    """One finding, info, for each of the `most` last restarts, with the number of all; one warning for each crash loop.

    Args:
        run: the run.
        loop: restarts from one step, one after the other, that make a crash loop.
        most: single restarts told.
    """
    restarts = run.trajectory.restarts
    loops, single = [], []
    for (_, tries), same in groupby(restarts, key=lambda r: (r.step, r.rewound > 0 and not r.from_start)):
        group = list(same)
        if tries and len(group) >= loop:
            loops.append(_loop(run, group, loop))
        else:
            single += [_finding(run, restart, len(restarts)) for restart in group]
    return [*loops, *single[-most:]]


def _loop(run: RunView, tries: list[Restart], loop: int) -> Finding:
    first, last = tries[0], tries[-1]
    ends = [r.last_step for r in tries]
    same = max(ends) - min(ends) <= SAME_ROWS * interval(run.series("loss").step)
    until = f"each after step {max(ends)}" if same else f"after steps {min(ends)} to {max(ends)}"
    row: dict[str, object] = {
        "source": first.source if first.source >= 0 else None,
        "line": first.line if first.line >= 0 else None,
    }
    measures = [
        Measure("kind", "crash_loop"), Measure("restarts", len(tries), limit=loop), Measure("same_step", same),
        Measure("steps_lost", sum(r.rewound for r in tries), "step"),
    ]  # fmt: skip
    if first.time is not None and first.pause is not None and last.time is not None:
        measures.append(Measure("seconds_lost", last.time - first.time + first.pause, "s"))
    return Finding(
        CODE, NAME, Severity.WARNING,
        f"Run restarts {len(tries)} times from step {first.step}: the attempts end {until}",
        run.where(row, step=first.step, last_step=max(ends), time=first.time), tuple(measures),
    )  # fmt: skip


def _finding(run: RunView, restart: Restart, count: int) -> Finding:
    pause = f" after a pause of {restart.pause:.0f} s" if restart.pause is not None and restart.pause >= 1 else ""
    if restart.from_start:
        said = f"Run begins again from step {restart.step} after step {restart.last_step}{pause}"
    elif restart.rewound:
        twice = "1 step" if restart.rewound == 1 else f"{restart.rewound} steps"
        said = f"Run restarts from step {restart.step} after step {restart.last_step} ({twice} trained twice){pause}"
    else:
        said = f"Run goes on at step {restart.step} in a new segment{pause}"
    row: dict[str, object] = {
        "source": restart.source if restart.source >= 0 else None,
        "line": restart.line if restart.line >= 0 else None,
    }
    where = run.where(row, step=restart.step, last_step=max(restart.step, restart.last_step), time=restart.time)
    measures = [
        Measure("steps_lost", restart.rewound, "step"),
        Measure("from_start", restart.from_start),
        Measure("restarts", count),
    ]
    if restart.pause is not None:
        measures.append(Measure("pause", restart.pause, "s"))
    return Finding(CODE, NAME, Severity.INFO, said, where, tuple(measures))
