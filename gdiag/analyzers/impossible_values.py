"""A logged value is one that its quantity cannot take.

What it checks: step times and their parts, throughputs, batch sizes, lengths and loss scales that are NaN, infinite or
below zero, and norms below zero, in a few rows at least. NaN that comes in turn with values all over a log stands for
"no value" and is not meant; a loss or gradient norm that is not finite is GD101, a learning rate GD309.

Why it matters: such rows are left out, so that a check of the column speaks of the others alone, and of none where all
are so.

What to do: look at how the value is computed: a timer read before it was started, a counter that was reset, a -1 that
stands for "not measured".
"""

from __future__ import annotations

from typing import Final

from gdiag.measures.impossible import Impossible, impossible
from gdiag.measures.run import RunView
from gdiag.model import Finding, Measure, Severity

CODE = "GD010"
NAME = "impossible-values"
TIMED: Final = (
    "step_time", "data_time", "compute_time", "comm_time", "tokens_per_s", "samples_per_s", "batch_size", "seq_len", "loss_scale",
)  # fmt: skip
NORMS: Final = ("grad_norm", "grad_norm_clipped", "param_norm", "update_norm")
NEEDS: tuple[str, ...] = ("|".join(f"steps.{name}" for name in (*TIMED, *NORMS)),)


def analyze(run: RunView, *, rows: int = 3) -> list[Finding]:
    """One finding for each column, worth knowing; rows: fewest rows whose value cannot be."""
    found = [(name, impossible(run.series(name), nonfinite=name in TIMED)) for name in (*TIMED, *NORMS)]
    return [_finding(run, name, seen, rows) for name, seen in found if seen is not None and len(seen.points) >= rows]


def _finding(run: RunView, name: str, seen: Impossible, rows: int) -> Finding:
    first, last, count = int(seen.points.step[0]), int(seen.points.step[-1]), len(seen.points)
    many = f"all {count}" if seen.everywhere else f"{count} of {seen.logged}"
    left = "nothing can be said of it" if seen.everywhere else "these rows are left out"
    return Finding(
        CODE, NAME, Severity.INFO,
        f"{name} is {seen.kind} in {many} rows, first at step {first}, which it cannot be: {left}",
        run.where(seen.points.row(0), last_step=last),
        (Measure("column", name), Measure("kind", seen.kind), Measure("rows", count, "", rows), Measure("logged", seen.logged)),
    )  # fmt: skip
