"""The run stands still.

What it checks: a stretch without any row that lasts fifty times the usual time between rows and ten minutes at least, that
does not return like a checkpoint or a validation, and in which nothing says that the run ended and was started again (steps
that go back, a launch, a checkpoint loaded, a clock set back, an exit); a timeout of a collective that the log reports.

Why it matters: every GPU waits and is paid for.

What to do: find the rank that did not arrive: stack dumps (py-spy, the NCCL flight recorder) of all ranks, the storage and
the data loader; set a shorter timeout for collectives.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from gdiag.measures.collective_timeouts import Timeouts
from gdiag.measures.curves import Curve
from gdiag.measures.run import RunView
from gdiag.model import Finding, Measure, Severity
from gdiag.reference.figures import listed

CODE = "GD009"
NAME = "hang"
NEEDS: tuple[str, ...] = ("steps.time|events.kind",)
FEW = 4
"""Ranks up to which a sentence names each without counting them."""


def analyze(run: RunView, *, factor: float = 50.0, seconds: float = 600.0, recurring: int = 3) -> list[Finding]:
    """One finding for each stand-still.

    factor: least pause in usual times between rows. seconds: least pause. recurring: so many pauses are a habit, not hangs.
    """
    timeouts = run.events.filter(pl.col("kind") == "nccl_timeout") if run.events.height else run.events
    findings = _pauses(run, timeouts, factor, seconds, recurring)
    if timeouts.height and not findings:
        row = timeouts.row(0, named=True)
        steps = run.paths[0].frame["step"]
        step = row["step"] if row["step"] is not None else (int(steps[-1]) if len(steps) else None)
        who = run.collective_timeouts
        at = f" at step {step}" if step is not None else ""
        after = f" after {who.waited:.0f} s" if who is not None and who.waited is not None else ""
        said = f"A collective times out{at}{after}{_waiting(who)}"
        rank = _rank(who, row["rank"])
        where = run.where(row, step=step, rank=rank, host=row["host"] if rank is not None else None, gpu=row["gpu"])
        measures = (Measure("timeouts", timeouts.height), Measure("text", str(row["text"] or "")[:200]), *_culprit(who))
        findings = [Finding(CODE, NAME, Severity.WARNING, said, where, measures)]
    return findings


def _rank(who: Timeouts | None, first: int | None) -> int | None:
    """The rank at fault, else the only one that waits: one of many victims is no place."""
    if who is None or who.culprit is not None:
        return who.culprit if who is not None else first
    return first if len(who.victims) < 2 else None


def _waiting(who: Timeouts | None) -> str:
    """Who waits, in what, and for whom, as far as the lines tell."""
    if who is None or not who.victims:
        return ""
    named = listed(who.victims)
    if len(who.victims) == 1:
        waiting = f"rank {named} waits"
    elif len(who.victims) == who.ranks:
        waiting = f"all {who.ranks} ranks wait"
    elif len(who.victims) <= FEW:
        waiting = f"ranks {named} wait"
    else:
        waiting = f"{len(who.victims)} ranks ({named}) wait"
    where = f" in {who.operation}" if who.operation is not None else ""
    if who.culprit is not None:
        return f": {waiting} for rank {who.culprit}{where}"
    if who.missing:
        return f": {waiting}{where}, {'ranks' if len(who.missing) > 1 else 'rank'} {listed(who.missing)} not among them"
    if len(who.victims) == who.ranks:
        return f": {waiting}{where}, none is missing"
    return f": {waiting}{where}; the log does not tell for which rank"


def _culprit(who: Timeouts | None) -> tuple[Measure, ...]:
    """What tells the rank that keeps the others waiting from its victims."""
    if who is None:
        return ()
    told: list[Measure] = [
        *([Measure("collective", who.operation)] if who.operation is not None else []), Measure("victims", ", ".join(map(str, who.victims))),
        Measure("desynchronised", who.desynchronised),
    ]  # fmt: skip
    if who.missing:
        told.append(Measure("missing_ranks", ", ".join(map(str, who.missing))))
    if who.culprit is not None:
        told.append(Measure("culprit_rank", who.culprit))
    if who.start is not None:
        told.append(Measure("waiting_since", who.start, "s"))
    if who.waited is not None:
        told.append(Measure("waited", who.waited, "s"))
    told += [Measure(name, text) for name, text in (("earlier_error", who.earlier), ("nccl_root", who.root)) if text]
    return tuple(told)


def _pauses(
    run: RunView, timeouts: pl.DataFrame, factor: float, seconds: float, recurring: int
) -> list[Finding]:  # fmt: skip
    curve = run.series("time")
    pause = np.diff(curve.value)
    steps = np.diff(curve.step)
    if len(pause) < 20:
        return []
    usual = float(np.median(pause / np.maximum(steps, 1)))
    long = np.flatnonzero((pause > factor * usual * np.maximum(steps, 1)) & (pause > seconds))
    started = _started(run)
    # The first step compiles and often validates before the second.
    long = np.array([i for i in long.tolist() if i > 0 and not _restarted(run, curve, i, started)], dtype=np.int64)
    if not len(long) or len(long) >= recurring:
        return []
    findings: list[Finding] = []
    for i in long.tolist():
        first, last = int(curve.step[i]), int(curve.step[i + 1])
        begin, end = float(curve.value[i]), float(curve.value[i + 1])
        reported = timeouts.filter(pl.col("time").is_between(begin, end)).height if timeouts.height else 0
        said = f"No row for {pause[i] / 60:.0f} min after step {first} (usually {usual:.2g} s per step)"
        evidence = (
            Measure("pause", float(pause[i]), "s", max(seconds, factor * usual)),
            Measure("usual", usual, "s"),
            Measure("timeouts", reported),
            *(_culprit(run.collective_timeouts) if reported else ()),
        )
        where = run.where(curve.finite.row(i), last_step=last, time=begin, last_time=end)
        severity = Severity.WARNING if reported else Severity.INFO
        findings.append(Finding(CODE, NAME, severity, said, where, evidence))
    return findings


def _started(run: RunView) -> set[int]:
    """Steps at which, or right after which, the run ended and was started again: the wait between is no stand-still."""
    steps = {restart.step for restart in run.trajectory.restarts} | {step for step, _ in run.proven_resumes}
    if not run.events.height:
        return steps
    ends = run.events.filter(pl.col("kind").is_in(["restart", "exit"]))["step"]
    return steps | set(ends.drop_nulls().to_list())


def _restarted(run: RunView, time: Curve, i: int, started: set[int]) -> bool:
    """Whether a restart lies between rows `i` and `i + 1` of `time`, or steps that go back share seconds with that wait."""
    begin, end = time.value[i], time.value[i + 1]
    return any(time.step[i] <= step <= time.step[i + 1] for step in started) or any(
        restart.time is not None
        and restart.pause is not None
        and begin < restart.time
        and end > restart.time - restart.pause
        for restart in run.trajectory.restarts
    )
