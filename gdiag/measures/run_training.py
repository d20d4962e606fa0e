"""What is measured of a run's training: trajectory, loss, gradients, schedule, data."""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise

import numpy as np
import polars as pl

from gdiag.measures.attribution import Attribution, attribute
from gdiag.measures.changes import Learning, learning
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
from gdiag.measures.nonfinite import NonFinite, nonfinite
from gdiag.measures.peak_stability import Instability, Stalled, instability, stalled
from gdiag.measures.resume import FreshStart, Resume, boundaries, fresh_start, resumes, with_pauses
from gdiag.measures.resume_state import CounterLoss, ScaleReset, counter_losses, scale_resets
from gdiag.measures.run_tables import RunTables
from gdiag.measures.sample_ids import Breach, Return, breaches, inside_epoch, outlasts_training, returns
from gdiag.measures.schedule import Schedule, recognise
from gdiag.measures.scheduler_state import Mismatch, mismatches
from gdiag.measures.segments import interval
from gdiag.measures.trajectory import Trajectory, trajectory
from gdiag.schema import Quantity


class RunTraining(RunTables):
    """Measures over the steps and layers of one run, each computed once, on first use."""

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
    def proven_resumes(self) -> list[tuple[int, int]]:
        """(first step after, steps rewound) of every place where steps, events or a clock say that the run was resumed."""
        events = self.events
        if events.height and {"kind", "step"} <= set(events.columns):
            events = events.filter((pl.col("kind") == "restart") & pl.col("step").is_not_null())
        steps = events["step"].to_list() if events.height else []
        return boundaries(self.trajectory.restarts, steps, self.series("elapsed"))

    @cached_property
    def resume_places(self) -> list[tuple[int, int]]:
        """Those, and the rare pauses as long as a restart takes."""
        return with_pauses(self.proven_resumes, self.series("time"))

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
        epoch, time = self.series("epoch"), self.series("time")
        places = [step for step, _ in self.resume_places]
        # Epochs also end in a pause: one counts as a restart here only where that cannot be.
        restarts = [
            step
            for since, step in pairwise([int(time.step[0]) if len(time) else 0, *places])
            if step in known or inside_epoch(epoch, step) or outlasts_training(time, step, since)
        ]
        pauses = [step for step in places if step not in restarts]
        return breaches(self.series("sample_start"), self.series("sample_end"), restarts, pauses)

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
        return factors(loss, places, self.grad_norm)

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

    @cached_property
    def update_norm(self) -> Curve:
        """The update norm, from the per-layer norms where no total is logged."""
        logged, layers = self.series("update_norm"), self.layer_table("update_norm")
        return logged if len(logged) or layers is None else total_of_layers(layers)

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
