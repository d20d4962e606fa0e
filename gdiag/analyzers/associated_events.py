"""Rare events come together more often than chance allows.

What it checks
    Whether slow steps, loss spikes, non-finite values, checkpoints, restarts, throttling and machine errors follow one
    another within `lag` logged rows: the share of episodes followed, against the same after moving every episode at random
    by up to 250 rows (999 draws). All pairs of a report are corrected together (Benjamini-Yekutieli at `q`). At least three
    episodes of both kinds are needed.

Why it matters
    A spike after each restart or a slow step after each Xid is a lead; two faults that merely share a run are two faults.
    It says that events coincide, not which of them is the cause.

What to do
    Read the incidents it names side by side; look for what both depend on.
"""

from __future__ import annotations

from itertools import permutations

import numpy as np
import polars as pl

from gdiag.measures import association
from gdiag.measures.association import Association
from gdiag.measures.run import RunView
from gdiag.measures.segments import Ints
from gdiag.model import Finding, Measure, Severity

CODE = "GD507"
NAME = "associated-events"
NEEDS: tuple[str, ...] = (
    "steps.step_time|steps.time|steps.elapsed|steps.tokens_per_s|steps.samples_per_s",
    "steps.loss",
)


def analyze(run: RunView, *, q: float = 0.05, lag: int = 2) -> list[Finding]:
    """A note per pair of kinds that holds after correction."""
    if run.step_times is None:
        return []
    steps = run.paths[0].frame["step"].to_numpy()
    kinds = {name: rows for name, rows in _kinds(run, steps).items() if len(rows)}
    pairs = [(a, b) for a, b in permutations(kinds, 2) if a != "slow steps" or b == "loss spikes"]
    tested = [
        t
        for a, b in pairs
        if (t := association.follows(kinds[a], kinds[b], len(steps), names=(a, b), lag=lag)) is not None
    ]
    held = association.significant(np.array([t.p for t in tested]), q)
    return [_finding(run, t, steps, kinds[t.cause], len(tested), q) for t, ok in zip(tested, held, strict=True) if ok]


def _kinds(run: RunView, steps: Ints) -> dict[str, Ints]:
    """Rows of every kind of rare event on the trajectory."""
    view = run.step_times
    assert view is not None
    slow = [s.rows for s in view.slow] + [s.rows for _, s in view.rhythms]
    slow_at = view.times.step[np.concatenate(slow)] if slow else np.empty(0, dtype=np.int64)
    spikes = [e.path.frame["step"][e.onset] for v in run.losses[:1] for e in v.events if e.kind == "spike"]
    bad = view.times.step[view.times.bad_values]
    events = run.events
    placed = events.filter(pl.col("step").is_not_null()) if "step" in events.columns else events.clear()
    named = {
        "checkpoints": placed.filter(pl.col("kind") == "checkpoint")["step"].to_numpy(),
        "restarts": np.array([r.step for r in run.trajectory.restarts], dtype=np.int64),
        "machine errors": np.array([r.step for r in run.reported if r.step is not None], dtype=np.int64),
        "throttling": np.array(_throttled(run), dtype=np.int64),
        "slow steps": slow_at, "loss spikes": np.array(spikes, dtype=np.int64), "non-finite steps": bad,
    }  # fmt: skip
    return {name: np.clip(np.searchsorted(steps, at), 0, len(steps) - 1) for name, at in named.items()}


def _throttled(run: RunView) -> list[int]:
    """Steps at which a stretch of throttling begins."""
    if run.telemetry is None:
        return []
    starts = [
        run.placed(e.start, e.end)
        for kind in ("thermal", "power brake")
        for e in run.telemetry.health.events(kind, gap=0.005)
    ]
    return [p.step for p in starts if p is not None and p.step is not None]


def _finding(run: RunView, found: Association, steps: Ints, rows: Ints, tests: int, q: float) -> Finding:
    evidence = (
        Measure("episodes", found.events), Measure("followed", found.followed), Measure("followed_share", round(100 * found.share, 1), "%"),
        Measure("chance", round(100 * found.chance, 1), "%"), Measure("p", found.p, "", q), Measure("tests", tests),
        Measure("first", found.cause), Measure("then", found.effect),
    )  # fmt: skip
    return Finding(
        CODE, NAME, Severity.INFO,
        f"{found.followed} of {found.events} {found.cause} are followed by {found.effect} within two rows, where chance gives "
        f"{100 * found.chance:.0f} % (p = {found.p:.3g}, {tests} pairs tested)",
        run.where(step=int(steps[rows[0]]), last_step=int(steps[rows[-1]])), evidence,
    )  # fmt: skip
