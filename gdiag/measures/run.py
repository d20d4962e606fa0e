"""Everything measured about one run, each measure computed once, on first use."""

from __future__ import annotations

from functools import cached_property
from typing import Final

import numpy as np
import polars as pl

from gdiag.measures import nvlinks as screens
from gdiag.measures import slowdowns, stragglers
from gdiag.measures.attribution import Attribution, attribute
from gdiag.measures.bandwidth import Sweep, sweeps
from gdiag.measures.changes import Learning, learning
from gdiag.measures.clock_drops import Drop, drops
from gdiag.measures.collective_timeouts import Timeouts, timeouts
from gdiag.measures.collective_waits import Waits, operation_waits, step_waits
from gdiag.measures.coupling import Coupling, coupling
from gdiag.measures.curves import Curve, Path
from gdiag.measures.data import Window, batch_window, own_history_z
from gdiag.measures.evaluation import EvalChange, Overfit, eval_change, overfit
from gdiag.measures.gradient_level import Calming, Surge, calming, surge
from gdiag.measures.gradients import Scaling, scaling, steady, total_of_layers, unscaled
from gdiag.measures.hidden_nan import HiddenNan, hidden_nan, without_zeros
from gdiag.measures.layers import LayerScan, LayerTable, layer_table, scan_layers
from gdiag.measures.loss_events import LossView, loss_view
from gdiag.measures.loss_scale import Skipping, skipping
from gdiag.measures.loss_units import EvalUnit, Factor, eval_unit, factors
from gdiag.measures.machine_events import Reported, reported
from gdiag.measures.nic_events import NicEvents, nic_events
from gdiag.measures.nonfinite import NonFinite, nonfinite
from gdiag.measures.nvlinks import MODULE, NVLINK
from gdiag.measures.peak_stability import Instability, Stalled, instability, stalled
from gdiag.measures.resume import FreshStart, Resume, boundaries, fresh_start, resumes
from gdiag.measures.resume_state import CounterLoss, ScaleReset, counter_losses, scale_resets
from gdiag.measures.sample_ids import Breach, Return, breaches, inside_epoch, returns
from gdiag.measures.schedule import Schedule, recognise
from gdiag.measures.scheduler_state import Mismatch, mismatches
from gdiag.measures.segments import Ints, interval
from gdiag.measures.slowdowns import StepTimeView
from gdiag.measures.step_time import step_times
from gdiag.measures.stragglers import RankTimes, Straggler
from gdiag.measures.telemetry import Place, Telemetry, place, step_stamps, telemetry
from gdiag.measures.trajectory import Trajectory, trajectory
from gdiag.model import Location, Run
from gdiag.schema import KEYS, LayerColumn, Quantity, Records

_SWITCH: Final = "switch "
"""How the scope of a switch's facts begins."""


class RunView:
    """One run's records and the measures over them.

    Analyzers read this and nothing else. A measure is a pure function of its own module; the property here only says
    what it is computed from and keeps the result.
    """

    def __init__(self, run: Run, records: Records, telemetry: Telemetry | None = None) -> None:
        """A view of one run; `telemetry` that a fleet's engine has counted stands for rows of `gpus`."""
        self.run = run
        self.records = records
        self._counted = telemetry

    @cached_property
    def steps(self) -> pl.DataFrame:
        """This run's rows of `steps`, all ranks, in file order."""
        return self._own(self.records.steps)

    @cached_property
    def layers(self) -> pl.DataFrame:
        """This run's rows of `layers`, all ranks, in file order; without zeros that stand for NaN."""
        own = self._own(self.records.layers)
        return own if self.hidden_nan is None else without_zeros(own, self.hidden_nan)

    @cached_property
    def gpus(self) -> pl.DataFrame:
        """This run's rows of `gpus`."""
        return self._own(self.records.gpus)

    @cached_property
    def events(self) -> pl.DataFrame:
        """This run's rows of `events`."""
        return self._own(self.records.events)

    @cached_property
    def step_times(self) -> StepTimeView | None:
        """Step time along the trajectory: changes of level, rhythms, slow steps; None when nothing says it."""
        times = step_times(self.paths[0].frame, [restart.step for restart in self.trajectory.restarts])
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
    def trajectory(self) -> Trajectory:
        """The order of this run's rows: paths, segments, restarts, writers; without zeros that stand for NaN."""
        return self._logged if self.hidden_nan is None else trajectory(without_zeros(self.steps, self.hidden_nan))

    @cached_property
    def _logged(self) -> Trajectory:
        return trajectory(self.steps)

    @cached_property
    def hidden_nan(self) -> HiddenNan | None:
        """Zeros that the logger wrote in place of NaN losses; None where there are none."""
        path = self._logged.paths[0]
        return hidden_nan(path.curve("loss"), path.curve("grad_norm"))

    @property
    def paths(self) -> tuple[Path, ...]:
        """The trajectory, then what restarts took back and other writers' rows."""
        return self.trajectory.paths

    def series(self, name: str) -> Curve:
        """A canonical column of `steps` on the trajectory: each step once, finite and non-finite apart."""
        return self.paths[0].curve(name)

    def logged(self, name: str) -> Curve:
        """The same as it was logged, with zeros that stand for NaN."""
        return self._logged.paths[0].curve(name)

    @cached_property
    def schedule(self) -> Schedule | None:
        """The plan behind the learning rate and the jumps it does not explain; None when it was not logged."""
        lr = self.series("lr").finite
        return recognise(lr.step, lr.value)

    @cached_property
    def scheduler_mismatches(self) -> list[Mismatch]:
        """Restarts after which the learning rate does not go on where it was."""
        return mismatches(self.paths, self.trajectory.restarts, self.schedule)

    @cached_property
    def peak_instability(self) -> Instability | None:
        """Loss or gradients out of control while the learning rate reaches its peak."""
        if self.schedule is None:
            return None
        return instability(self.schedule, self.series("lr"), self.series("loss"), self.series("grad_norm"))

    @cached_property
    def peak_stall(self) -> Stalled | None:
        """A loss that stopped falling before the learning rate reached its peak and never fell again."""
        if self.schedule is None:
            return None
        return stalled(self.schedule, self.series("lr"), self.series("loss"), self.series("grad_norm"))

    @cached_property
    def gradient_surge(self) -> Surge | None:
        """Gradients that grow manyfold in the first steps while nothing is learned."""
        if self.schedule is None:
            return None
        return surge(self.schedule, self.series("lr"), self.series("loss"), self.series("grad_norm"))

    @cached_property
    def gradient_calming(self) -> Calming | None:
        """Gradients that wander near the peak learning rate and calm when it has fallen."""
        return calming(self.schedule, self.series("lr"), self.series("grad_norm")) if self.schedule else None

    @cached_property
    def resume_places(self) -> list[tuple[int, int]]:
        """(first step after, steps rewound) of every place where training was taken up again."""
        events = self.events
        if events.height and {"kind", "step"} <= set(events.columns):
            events = events.filter((pl.col("kind") == "restart") & pl.col("step").is_not_null())
        steps = events["step"].to_list() if events.height else []
        return boundaries(self.trajectory.restarts, steps, self.series("elapsed"), self.series("time"))

    @cached_property
    def resumes(self) -> list[Resume]:
        """The loss before and after every place where training was taken up again."""
        return resumes(self.paths, self.resume_places)

    @cached_property
    def counter_losses(self) -> list[CounterLoss]:
        """Places where the count of steps does not go on while the model does."""
        return counter_losses(self.paths, self.trajectory.restarts)

    @property
    def begins_trained(self) -> bool:
        """Whether the first row of the trajectory is that of a model that went on from an earlier segment's end."""
        return any(c.kind == "reset" for c in self.counter_losses)

    @cached_property
    def scale_resets(self) -> list[ScaleReset]:
        """Places where the loss scale does not go on from where it was."""
        return scale_resets(self.paths, [step for step, _ in self.resume_places])

    @cached_property
    def fresh_start(self) -> FreshStart | None:
        """A log that begins late in a run with the loss of an untrained model."""
        return fresh_start(self.series("loss"), self.series("grad_norm"))

    @cached_property
    def skipping(self) -> Skipping | None:
        """Skipped steps and halvings of the loss scale; None when there are none."""
        return skipping(self.series("loss_scale"), self.series("skipped"))

    @cached_property
    def overfit(self) -> Overfit | None:
        """How far validation has left its best; None with too few evaluations."""
        return overfit(self.series("loss"), self.series("eval_loss"))

    def eval_change(self, step: int) -> EvalChange | None:
        """How the validation loss moves at `step`; None without two evaluations on both sides."""
        return eval_change(self.series("eval_loss"), step)

    @cached_property
    def sample_breaches(self) -> list[Breach]:
        """Places where sample ids fall back or leap ahead."""
        known = [r.step for r in self.trajectory.restarts]
        # Epochs also end in a pause: one counts as a restart here only where the epoch is logged and goes on.
        restarts = [s for s, _ in self.resume_places if s in known or inside_epoch(self.series("epoch"), s)]
        return breaches(self.series("sample_start"), self.series("sample_end"), restarts)

    @cached_property
    def sample_returns(self) -> list[Return]:
        """Loss events at the samples of an earlier one."""
        onsets = sorted({e.onset_step for e in self.losses[0].events})
        return returns(onsets, self.series("sample_start"), self.series("sample_end"), self.series("epoch"))

    @cached_property
    def loss_factors(self) -> list[Factor]:
        """Boundaries at which level and noise of the loss change by one integer factor."""
        loss, batch = self.series("loss"), self.series("batch_size")
        changed = batch.step[1:][np.diff(batch.value) != 0][:200]
        jumps = [e.onset_step for e in self.losses[0].events if e.kind != "spike"]
        drops = loss.step[1:][loss.value[1:] < 0.6 * loss.value[:-1]][:50]
        places = [r.step for r in self.trajectory.restarts] + jumps + changed.tolist() + drops.tolist()
        return factors(loss, places)

    @cached_property
    def eval_unit(self) -> EvalUnit | None:
        """A validation figure in another unit than the training loss."""
        return eval_unit(self.series("loss"), self.series("eval_loss"))

    def batch_window(self, step: int) -> Window | None:
        """The sample ids consumed at `step`, None when not logged."""
        return batch_window(self.series("sample_start"), self.series("sample_end"), self.series("samples"), step)

    def batch_z(self, statistic: str, step: int) -> float | None:
        """Robust z of a statistic of `step`'s batch against its own history, None when not logged."""
        return own_history_z(self.series(statistic), step)

    @cached_property
    def losses(self) -> tuple[LossView, ...]:
        """The loss along every path: scan and events; the trajectory first."""
        return tuple(loss_view(path) for path in self.paths)

    @cached_property
    def learning(self) -> Learning | None:
        """What the loss gained over the trajectory; None for fewer than 60 rows."""
        return learning(self.series("loss").value)

    @cached_property
    def nonfinite(self) -> tuple[NonFinite, ...]:
        """Stretches of NaN or infinite losses and norms on every path."""
        return tuple(stretch for path in self.paths for stretch in nonfinite(path, self.steps))

    @cached_property
    def grad_scaling(self) -> Scaling | None:
        """How the logged gradient norm follows the loss scale; None when the scale is not logged or never changes."""
        return scaling(self.series("grad_norm"), self.series("loss_scale"))

    @cached_property
    def grad_norm(self) -> Curve:
        """The gradient norm before clipping, divided by the loss scale where it was logged multiplied by it.

        From the per-layer norms where no total is logged.
        """
        logged = self.series("grad_norm")
        if not len(logged) and not len(logged.nonfinite):
            layers = self.layer_table("grad_norm")
            return total_of_layers(layers) if layers is not None else logged
        if self.grad_scaling is not None and self.grad_scaling.scaled:
            return unscaled(logged, self.series("loss_scale"))
        return logged

    def layer_table(self, quantity: Quantity) -> LayerTable | None:
        """One quantity of all layers, one row per logged step; None when it was not logged."""
        if quantity not in self._layer_tables:
            self._layer_tables[quantity] = layer_table(self.layers, self.layer_columns, quantity)
        return self._layer_tables[quantity]

    @cached_property
    def layer_scan(self) -> LayerScan | None:
        """Every layer's gradient norm against its own history; None when no layer's was logged."""
        layers = self.layer_table("grad_norm")
        return scan_layers(layers) if layers is not None else None

    def attribution(self, step: int, last_step: int) -> Attribution | None:
        """Which layer's gradient rose first around the steps `step` to `last_step`; None when none did."""
        if self.layer_scan is None:
            return None
        return attribute(self.layer_scan, step, last_step, 10 * interval(self.grad_norm.step))

    def steady_before(self, step: int) -> bool:
        """Whether the gradient norm was steady in the rows before `step`: what happens then is no consequence of its turmoil."""
        return steady(self.grad_norm.value[self.grad_norm.step < step])

    @cached_property
    def _layer_tables(self) -> dict[Quantity, LayerTable | None]:
        return {}

    @cached_property
    def facts(self) -> pl.DataFrame:
        """This run's rows of `facts`, less those of nvidia-smi's screens of links."""
        return self._own(self.records.facts).filter(~screens.said() & ~pl.col("scope").str.starts_with(_SWITCH))

    @cached_property
    def switches(self) -> pl.DataFrame:
        """Rows of `facts` with what switches say of their supplies, fans and temperature, one scope per switch."""
        return self._own(self.records.facts).filter(pl.col("scope").str.starts_with(_SWITCH))

    @cached_property
    def ports(self) -> pl.DataFrame:
        """This run's rows of `ports`, network ports alone."""
        return self._own(self.records.ports).filter(~screens.counted(NVLINK) & ~screens.counted(MODULE))

    @cached_property
    def nvlinks(self) -> pl.DataFrame:
        """What nvidia-smi topo and nvlink showed; see measures.nvlinks."""
        return screens.screens(self._own(self.records.ports), self._own(self.records.facts))

    @cached_property
    def nvlink_counters(self) -> pl.DataFrame:
        """Rows of `ports` that count what went wrong on NVLinks."""
        states = pl.col("counter").is_in(["nvlink_active", "nvlink_rate"])
        return self._own(self.records.ports).filter(screens.counted(NVLINK) & ~states)

    @cached_property
    def modules(self) -> pl.DataFrame:
        """Rows of `ports` with what transceivers say of themselves."""
        return self._own(self.records.ports).filter(screens.counted(MODULE))

    @cached_property
    def baselines(self) -> pl.DataFrame:
        """What this run's benchmarks are held against."""
        return self._own(self.records.baselines)

    @cached_property
    def sweeps(self) -> tuple[Sweep, ...]:
        """Collective benchmarks, one per test run in the files."""
        return sweeps(self._own(self.records.collectives), self._own(self.records.devices), self.facts)

    @property
    def layer_columns(self) -> tuple[LayerColumn, ...]:
        """The catalogue of `layers`."""
        return self.records.layer_columns

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

    def where(
        self, row: dict[str, object] | None = None, *, step: int | None = None, last_step: int | None = None,
        rank: int | None = None, layer: str | None = None, host: str | None = None, gpu: int | None = None,
        time: float | None = None, last_time: float | None = None,
    ) -> Location:  # fmt: skip
        """A Location in this run; file and line are taken from a `steps`, `layers`, `gpus` or `events` row."""
        file = line = None
        if row is not None:
            source, number = row.get("source"), row.get("line")
            if isinstance(source, int):
                file = self.records.sources[source].path
            if isinstance(number, int):
                line = number
            if step is None and isinstance(row.get("step"), int):
                step = row["step"]  # type: ignore[assignment]
            if time is None and isinstance(row.get("time"), float):
                time = row["time"]  # type: ignore[assignment]
        return Location(
            file=file, line=line, run=self.run.id, rank=rank, step=step, last_step=last_step, layer=layer, host=host,
            gpu=gpu, time=time, last_time=last_time,
        )  # fmt: skip

    def _own(self, frame: pl.DataFrame) -> pl.DataFrame:
        if "run" not in frame.columns or not frame.height or len(self.records.runs) == 1:
            return frame
        return frame.filter(pl.col("run") == self.run.id)
