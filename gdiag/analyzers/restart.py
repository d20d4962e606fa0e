"""The run was restarted.

What it checks: steps that go back, or begin again from the start, and where a second file goes on.

Why it matters: a clean resume costs the steps trained twice and the pause. The later rows are used for every step; what
was taken back is judged as well and marked so.

What to do: nothing, unless restarts are frequent (look at the exits, GD008) or the loss differs after one (GD109).
"""

from __future__ import annotations

from gdiag.measures.run import RunView
from gdiag.measures.trajectory import Restart
from gdiag.model import Finding, Measure, Severity

CODE = "GD003"
NAME = "restart"
NEEDS: tuple[str, ...] = ("steps.step",)


def analyze(run: RunView, *, most: int = 10) -> list[Finding]:
    """One finding, info, for each of the `most` last restarts, with the number of all."""
    restarts = run.trajectory.restarts
    return [_finding(run, restart, len(restarts)) for restart in restarts[-most:]]


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
