"""What is measured of the machines under a run, one plain function each: times, telemetry, collectives."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gdiag.measures import bandwidth, machine_events, slowdowns
from gdiag.measures import coupling as couplings
from gdiag.measures import nic_events as nics
from gdiag.measures import stragglers as ranks_apart
from gdiag.measures import telemetry as health
from gdiag.measures.bandwidth import Sweep
from gdiag.measures.clock_drops import Drop, drops
from gdiag.measures.collective_timeouts import Timeouts, timeouts
from gdiag.measures.collective_waits import Waits, operation_waits, step_waits
from gdiag.measures.coupling import Coupling
from gdiag.measures.machine_events import Reported
from gdiag.measures.nic_events import NicEvents
from gdiag.measures.segments import Ints
from gdiag.measures.slowdowns import StepTimeView
from gdiag.measures.step_time import step_times as measured_times
from gdiag.measures.stragglers import RankTimes, Straggler
from gdiag.measures.telemetry import Place, Telemetry, place, step_stamps

if TYPE_CHECKING:
    from gdiag.measures.run import RunView


def step_times(run: RunView) -> StepTimeView | None:
    """Step time along the trajectory: changes of level, rhythms, slow steps; None when nothing says it."""
    restarts = {restart.step for restart in run.trajectory.restarts} | {step for step, _ in run.proven_resumes}
    times = measured_times(run.paths[0].frame, sorted(restarts))
    return None if times is None else slowdowns.view(times)


def rank_times(run: RunView) -> RankTimes | None:
    """The time that tells ranks apart, per step and rank; None without rank rows."""
    return ranks_apart.rank_times(run.steps)


def stragglers(run: RunView) -> list[Straggler]:
    """Ranks slower than the others over a stretch of the run."""
    return [] if run.rank_times is None else ranks_apart.find(run.rank_times)


def telemetry(run: RunView) -> Telemetry | None:
    """GPU telemetry and its place on the step log's clock; None without rows of `gpus`."""
    if run.counted is not None:
        return run.counted
    stamps = run.series("time").value
    times = run.step_times.times if run.step_times is not None else None
    elapsed = None if len(stamps) >= 2 or times is None or times.rate else step_stamps(times)
    used = run.gpus["source"].unique().drop_nulls().to_list() if "source" in run.gpus.columns else []
    columns = [run.records.sources[i].columns for i in used]
    return health.telemetry(run.gpus, columns, stamps, elapsed, run.own(run.records.facts))


def coupling(run: RunView) -> Coupling | None:
    """How step time follows the slowest GPU's clock; None where it cannot be told."""
    if run.telemetry is None or run.step_times is None:
        return None
    return couplings.coupling(run.telemetry, run.step_times.times)


def clock_drops(run: RunView) -> list[Drop]:
    """Clocks below their own earlier level where no reason was logged."""
    return drops(run.telemetry.health.partial) if run.telemetry is not None else []


def reported(run: RunView) -> list[Reported]:
    """Xid and SXid lines by code and GPU."""
    return machine_events.reported(
        run.events, run.telemetry, run.step_times.times if run.step_times is not None else None
    )


def slow_rows(run: RunView) -> Ints:
    """Slow steps and steps at a slower level, as indices into the step times."""
    view = run.step_times
    if view is None:
        return np.empty(0, dtype=np.int64)
    rows = [s.rows for s in view.slow] + [np.arange(c.start, c.end + 1) for c in view.changes]
    return np.unique(np.concatenate(rows)) if rows else np.empty(0, dtype=np.int64)


def nic_events(run: RunView) -> list[NicEvents]:
    """What the kernel reports of network cards, by card and kind."""
    return nics.nic_events(run.events, run.step_times.times if run.step_times is not None else None, run.slow_rows)


def collective_timeouts(run: RunView) -> Timeouts | None:
    """Who waits and who does not arrive where collectives time out; None without time-outs."""
    ranks = run.steps["rank"].max() if "rank" in run.steps.columns else None
    return timeouts(run.events, int(ranks) + 1 if isinstance(ranks, int) else None)


def collective_waits(run: RunView) -> list[Waits]:
    """Own times of the run's collectives: per step, per single operation, where logged."""
    restarts = [restart.step for restart in run.trajectory.restarts]
    seen = (
        step_waits(run.paths[0].frame, run.steps, restarts),
        operation_waits(run.own(run.records.operations)),
    )
    return [waits for waits in seen if waits is not None]


def placed(run: RunView, start: float, end: float) -> Place | None:
    """Where a stretch of telemetry time lies in this run, and its effect on step time; None without telemetry."""
    if run.telemetry is None:
        return None
    times = run.step_times.times if run.step_times is not None else None
    return place(run.telemetry, times, start, end)


def sweeps(run: RunView) -> tuple[Sweep, ...]:
    """Collective benchmarks, one per test run in the files."""
    return bandwidth.sweeps(run.own(run.records.collectives), run.devices, run.facts)
