"""Everything measured about one run, each measure computed once, on first use."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import polars as pl

from gdiag.measures import slowdowns, stragglers
from gdiag.measures.bandwidth import Sweep, sweeps
from gdiag.measures.clock_drops import Drop, drops
from gdiag.measures.collective_timeouts import Timeouts, timeouts
from gdiag.measures.collective_waits import Waits, operation_waits, step_waits
from gdiag.measures.coupling import Coupling, coupling
from gdiag.measures.machine_events import Reported, reported
from gdiag.measures.nic_events import NicEvents, nic_events
from gdiag.measures.run_training import RunTraining
from gdiag.measures.segments import Ints
from gdiag.measures.slowdowns import StepTimeView
from gdiag.measures.step_time import step_times
from gdiag.measures.stragglers import RankTimes, Straggler
from gdiag.measures.telemetry import Place, Telemetry, place, step_stamps, telemetry
from gdiag.schema import KEYS


class RunView(RunTraining):
    """One run's records and the measures over them.

    Analyzers read this and nothing else. A measure is a pure function of its own module; the property here only says
    what it is computed from and keeps the result.
    """

    @cached_property
    def step_times(self) -> StepTimeView | None:
        """Step time along the trajectory: changes of level, rhythms, slow steps; None when nothing says it."""
        restarts = {restart.step for restart in self.trajectory.restarts} | {step for step, _ in self.proven_resumes}
        times = step_times(self.paths[0].frame, sorted(restarts))
        return None if times is None else slowdowns.view(times)

    @cached_property
    def rank_times(self) -> RankTimes | None:
        """The time that tells ranks apart, per step and rank; None without rank rows."""
        return stragglers.rank_times(self.steps)

    @cached_property
    def stragglers(self) -> list[Straggler]:
        """Ranks slower than the others over a stretch of the run."""
        return [] if self.rank_times is None else stragglers.find(self.rank_times)

    @cached_property
    def telemetry(self) -> Telemetry | None:
        """GPU telemetry and its place on the step log's clock; None without rows of `gpus`."""
        if self._counted is not None:
            return self._counted
        stamps = self.series("time").value
        elapsed = None if len(stamps) >= 2 or self.step_times is None else step_stamps(self.step_times.times)
        used = self.gpus["source"].unique().drop_nulls().to_list() if "source" in self.gpus.columns else []
        columns = [self.records.sources[i].columns for i in used]
        return telemetry(self.gpus, columns, stamps, elapsed, self._own(self.records.facts))

    @cached_property
    def coupling(self) -> Coupling | None:
        """How step time follows the slowest GPU's clock; None where it cannot be told."""
        if self.telemetry is None or self.step_times is None:
            return None
        return coupling(self.telemetry, self.step_times.times)

    @cached_property
    def clock_drops(self) -> list[Drop]:
        """Clocks below their own earlier level where no reason was logged."""
        return drops(self.telemetry.health.partial) if self.telemetry is not None else []

    @cached_property
    def reported(self) -> list[Reported]:
        """Xid and SXid lines by code and GPU."""
        return reported(self.events, self.telemetry, self.step_times.times if self.step_times is not None else None)

    @cached_property
    def slow_rows(self) -> Ints:
        """Slow steps and steps at a slower level, as indices into the step times."""
        view = self.step_times
        if view is None:
            return np.empty(0, dtype=np.int64)
        rows = [s.rows for s in view.slow] + [np.arange(c.start, c.end + 1) for c in view.changes]
        return np.unique(np.concatenate(rows)) if rows else np.empty(0, dtype=np.int64)

    @cached_property
    def nic_events(self) -> list[NicEvents]:
        """What the kernel reports of network cards, by card and kind."""
        return nic_events(self.events, self.step_times.times if self.step_times is not None else None, self.slow_rows)

    @cached_property
    def collective_timeouts(self) -> Timeouts | None:
        """Who waits and who does not arrive where collectives time out; None without time-outs."""
        ranks = self.steps["rank"].max() if "rank" in self.steps.columns else None
        return timeouts(self.events, int(ranks) + 1 if isinstance(ranks, int) else None)

    @cached_property
    def collective_waits(self) -> list[Waits]:
        """Own times of the run's collectives: per step, per single operation, where logged."""
        restarts = [restart.step for restart in self.trajectory.restarts]
        seen = (
            step_waits(self.paths[0].frame, self.steps, restarts),
            operation_waits(self._own(self.records.operations)),
        )
        return [waits for waits in seen if waits is not None]

    def placed(self, start: float, end: float) -> Place | None:
        """Where a stretch of telemetry time lies in this run, and its effect on step time; None without telemetry."""
        if self.telemetry is None:
            return None
        times = self.step_times.times if self.step_times is not None else None
        return place(self.telemetry, times, start, end)

    @cached_property
    def sweeps(self) -> tuple[Sweep, ...]:
        """Collective benchmarks, one per test run in the files."""
        return sweeps(self._own(self.records.collectives), self._own(self.records.devices), self.facts)

    def has(self, column: str) -> bool:
        """Whether a column such as steps.loss, layers.grad_norm or gpus.clock_sm holds a value in this run."""
        table, _, name = column.partition(".")
        if table == "gpus" and self._counted is not None:
            return not name or name in self._counted.columns
        if table == "layers" and name not in KEYS:
            names = [c.column for c in self.layer_columns if not name or c.quantity == name]
            held = set(self.layers.columns)
            return self.layers.height > 0 and any(self.layers[n].count() for n in names if n in held)
        frame: pl.DataFrame = (
            getattr(self, table) if hasattr(type(self), table) else self._own(getattr(self.records, table))
        )
        if not name:
            return frame.height > 0
        return name in frame.columns and frame[name].count() > 0
