"""Slow steps come at a steady distance.

What it checks
    Distances between slow steps (also over one or two in between) are tried as periods, fitted as real numbers: at least
    four hits (three when none is missing), half of the ticks, and a chance below 1e-4 after correction for the periods
    tried; or logged rows with and without a pause take turns as evenly as a period in a log of every so many steps makes
    them. The period is compared with the intervals that the configuration names, with checkpoints, evaluations and data
    shards seen in the log. Where not every step is logged, the true period may be shorter: pauses fall between rows.

Why it matters
    Mostly it does not: checkpoints, evaluations, shard loads and garbage collection are paid for by design. In 72 of 73
    real logs the rare slow steps were a rhythm, so it must not be taken for congestion.

What to do
    If the share of time is worth it: save checkpoints asynchronously, prefetch the next shard, move evaluation to other
    nodes, call the garbage collector by hand at fixed steps.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import polars as pl

from gdiag.analyzers import timing
from gdiag.measures import slow_steps
from gdiag.measures.run import RunView
from gdiag.model import Finding, Measure, Severity
from gdiag.reference.figures import distance, multiple

CODE = "GD503"
NAME = "periodic-slow-steps"
NEEDS: tuple[str, ...] = ("steps.step_time|steps.time|steps.elapsed|steps.tokens_per_s|steps.samples_per_s",)

_INTERVALS: Final = {
    "save_interval": "checkpoint", "checkpoint_interval": "checkpoint", "save_steps": "checkpoint",
    "eval_interval": "evaluation", "eval_steps": "evaluation", "validation_interval": "evaluation",
    "log_interval": "logging", "logging_steps": "logging", "gc_interval": "garbage collection",
    "steps_per_epoch": "epoch", "shard_steps": "data shard",
}  # fmt: skip


def analyze(run: RunView) -> list[Finding]:
    view = run.step_times
    if view is None:
        return []
    known = _known(run)
    found = []
    for rhythm, slow in view.rhythms:
        match = slow_steps.matched(rhythm.period, {name: value for name, (value, _) in known.items()}, view.interval)
        meaning = known[match[0]][1] if match else ""
        total = float(np.sum(view.times.seconds))
        cost = 100 * slow.seconds_lost / total
        evidence = [
            *timing.evidence(view, slow, 1.25),
            Measure("period", round(rhythm.period, 2), "step"),
            Measure("hits", len(rhythm.hits)),
            Measure("coverage", round(100 * rhythm.coverage, 1), "%", 50.0),
            Measure("log10_chance", round(rhythm.log10_chance, 1), "", -4.0),
            Measure("time_share", round(cost, 2), "%"),
        ]
        if view.interval > 1:
            evidence.append(Measure("log_interval", view.interval, "step"))
        if match:
            evidence.append(Measure("matches", f"{meaning} ({match[0]} {match[1]:g})"))
        found.append(
            Finding(
                CODE,
                NAME,
                Severity.INFO,
                f"a step takes {multiple(slow.ratio)} times as long every {distance(rhythm.period)} steps"
                f"{' or oftener' if view.interval > 1 and rhythm.period < 2 * view.interval else ''}"
                f"{f', as the {meaning} interval does' if meaning else ''}{timing.held_by(slow)}: {cost:.1f} % of the time",
                timing.place(run, view, slow),
                tuple(evidence),
            )
        )
    return found


def _known(run: RunView) -> dict[str, tuple[float, str]]:
    """Name → (interval in steps, meaning) from the configuration and from what the log shows."""
    known = {
        key: (float(value), meaning)
        for key, meaning in _INTERVALS.items()
        if isinstance(value := run.run.config.get(key), int | float) and value > 1
    }
    saved = run.events.filter(pl.col("kind") == "checkpoint")["step"].drop_nulls().unique().sort()
    evals = run.series("eval_loss").step
    for name, meaning, steps in (("checkpoints", "checkpoint", saved.to_numpy()), ("evaluations", "evaluation", evals)):
        if len(steps) >= 3:
            known[name] = (float(np.median(np.diff(steps))), meaning)
    return known
