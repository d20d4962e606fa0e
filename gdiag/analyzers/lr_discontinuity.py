"""Finds jumps of the learning rate that its schedule does not explain.

What it checks: changes between two logged rows that are far steeper than their neighbours and belong neither to a
warm-up, a step schedule, a restart of a cycle nor a corner; how large they are and whether the rate returns. Jumps at
a restart of the run are GD306.

Why it matters: a rate that rises tenfold in one step can undo hours of training in the next; a rate that falls to
nothing trains no more (GD303).

What to do: look for a change of parameter groups, an override, a unit mistake in the scheduler's steps or a scheduler
stepped by two owners; roll back to before the jump when the loss did not recover.
"""

from __future__ import annotations

import math

from gdiag.measures.run import RunView
from gdiag.measures.schedule import Jump
from gdiag.model import Finding, Measure, Severity

CODE = "GD302"
NAME = "lr-discontinuity"
NEEDS: tuple[str, ...] = ("steps.lr",)
STAIR = 50.0
"""How many times the first level a warm-up by epochs reaches with its second (timm: 1e-6, then a fifth of the peak)."""


def analyze(run: RunView, *, ratio: float = 1.05, most: int = 20) -> list[Finding]:
    """A finding per unexplained jump.

    ratio: least change, as after over before or its inverse. most: findings at most, the largest first. A lasting fall is
    information: whether it came too early is judged by the loss (GD303); so is the first stair of a warm-up by epochs.
    """
    schedule = run.schedule
    if schedule is None:
        return []
    resumed = {m.step for m in run.scheduler_mismatches}
    jumps = [j for j in schedule.jumps if j.step not in resumed and _size(j) >= math.log(ratio)]
    jumps = sorted(sorted(jumps, key=_size, reverse=True)[:most], key=lambda j: j.step)
    return [_finding(run, jump, schedule.peak, ratio) for jump in jumps]


def _size(jump: Jump) -> float:
    low, high = sorted((jump.before, jump.after))
    return math.log(high / low) if low > 0 else math.inf


def _first_stair(run: RunView, jump: Jump) -> bool:
    """Whether the rate stood at next to nothing from the log's first row on: the first stair of a warm-up by epochs."""
    before = run.series("lr").finite.value[: jump.index]
    return jump.ratio >= STAIR and bool(len(before)) and float(before.max()) == float(before.min())


def _finding(run: RunView, jump: Jump, peak: float, limit: float) -> Finding:
    points = run.series("lr").finite
    verb = "rises" if jump.after > jump.before else "falls"
    times = f" (×{jump.ratio:.3g})" if math.isfinite(jump.ratio) else ""
    lasting = f"until step {jump.last_step}" if jump.returns else "and does not return"
    at_restart = any(r.step == jump.step for r in run.trajectory.restarts)
    mild = not jump.returns and (jump.ratio < 1 or _first_stair(run, jump))
    evidence = [
        Measure("lr_before", jump.before),
        Measure("lr_at_onset", jump.after),
        *([Measure("lr_share_of_peak", jump.after / peak)] if peak > 0 else []),
        Measure("lasts", not jump.returns),
        Measure("duration", jump.last_step - jump.step + 1, "step"),
        Measure("at_restart", at_restart),
    ]
    if math.isfinite(jump.ratio):
        evidence.insert(0, Measure("lr_ratio", jump.ratio, limit=limit))
    window = run.batch_window(jump.step)
    if window is not None:
        evidence += [Measure("sample_start", window.first), Measure("sample_end", window.last)]
    return Finding(
        CODE, NAME, Severity.INFO if mild else Severity.WARNING,
        f"The learning rate {verb} from {jump.before:.3g} to {jump.after:.3g}{times} at step {jump.step}, which its schedule does not explain, {lasting}",
        run.where(points.row(jump.index), step=jump.step, last_step=jump.last_step if jump.returns else None),
        tuple(evidence),
    )  # fmt: skip
