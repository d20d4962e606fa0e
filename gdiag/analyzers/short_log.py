"""The log holds too little to judge training by.

What it checks: how many losses were logged, finite or not. Below `spikes` nothing but a leap that nobody overlooks shows in
them; below `learning` it cannot be said whether the loss falls, stands still or leaves its course. Without one, only what
else was logged is judged. A loss that begins high and ends far higher in those rows is told for all that.

Why it matters: nothing found in a few rows is no sign of health, and neither is a log without the loss.

What to do: give the whole log; where the loss is there under a name that was not recognised, `gdiag doctor` shows the
columns and --map names one.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from gdiag.measures.run import RunView
from gdiag.model import Finding, Measure, Severity

CODE = "GD011"
NAME = "short-log"
NEEDS: tuple[str, ...] = ("steps.step",)
OTHERS: Final = {
    "grad_norm": "gradient norm", "lr": "learning rate", "eval_loss": "validation loss", "step_time": "step time",
    "time": "pace by time stamps", "tokens_per_s": "throughput",
}  # fmt: skip
FIRST_NAT: Final = 4.0
PEAK, END = 2.0, 1.5
"""A loss that begins at so many nat, reaches that multiple of it and ends at this one has not begun to learn."""
LEAST_LOSSES: Final = 5


def analyze(run: RunView, *, spikes: int = 30, learning: int = 60) -> list[Finding]:
    """At most one finding, worth knowing, a warning where the loss only grows; thresholds are rows."""
    steps = run.paths[0].frame["step"]
    if not len(steps):
        return []
    loss = run.logged("loss")
    rows = len(np.union1d(loss.step, loss.nonfinite.step))
    if rows >= learning or (not rows and _judged_otherwise(run, learning)):
        return []
    where = run.where(step=int(steps[0]), last_step=int(steps[-1]))
    evidence = (Measure("losses", rows, "", learning), Measure("steps", len(steps)))
    said, severity = _said(run, rows, len(steps), spikes, learning), Severity.INFO
    if rows < spikes and (astray := _astray(run)) is not None:
        said, severity = f"{astray}; {said[0].lower()}{said[1:]}", Severity.WARNING
    return [Finding(CODE, NAME, severity, said, where, evidence)]


def _astray(run: RunView) -> str | None:
    """A loss that leaves its start upwards in the few rows there are, and ends there."""
    loss = run.series("loss")
    value = loss.value
    if len(value) < LEAST_LOSSES or value[0] < FIRST_NAT or value.max() < PEAK * value[0] or value[-1] < END * value[0]:
        return None
    peak = int(np.argmax(value))
    until = "" if peak == len(value) - 1 else f", {value[peak]:.4g} at step {loss.step[peak]}"
    return f"The loss diverges from step {loss.step[0]} on: {value[0]:.4g} nat there{until}, {value[-1]:.4g} at step {loss.step[-1]}, the last"


def _said(run: RunView, rows: int, steps: int, spikes: int, learning: int) -> str:
    if rows:
        logged = f"{rows} {'loss is' if rows == 1 else 'losses are'} logged"
        if rows < spikes:
            return f"Too short to judge more than leaps: {logged}, spikes need {spikes} rows, divergence and plateaus {learning}"
        return f"Too short to judge divergence and plateaus: {logged}, they need {learning} rows"
    seen = [words for name, words in OTHERS.items() if run.has(f"steps.{name}")]
    seen += ["per-layer values"] if run.layer_columns else []
    rest = f"only {', '.join(seen)} can be judged" if seen else "nothing of training can be judged"
    return f"No loss is logged in {steps} {'row' if steps == 1 else 'rows'}: {rest}"


def _judged_otherwise(run: RunView, learning: int) -> bool:
    """Whether validation or per-layer values stand in for the loss."""
    return len(run.series("eval_loss")) >= learning
