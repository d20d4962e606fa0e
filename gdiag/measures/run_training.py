"""What is measured of a run's training, one plain function each: trajectory, loss, gradients, schedule, data."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from gdiag.measures import carried_off as weights
from gdiag.measures import changes, data, evaluation, loss_scale, loss_units, resume, resume_state
from gdiag.measures import hidden_nan as zeros
from gdiag.measures import nonfinite as stretches
from gdiag.measures import trajectory as trajectories
from gdiag.measures.attribution import Attribution, attribute
from gdiag.measures.carried_off import CarriedOff
from gdiag.measures.changes import Learning
from gdiag.measures.curves import Curve, Path
from gdiag.measures.data import Window, own_history_z
from gdiag.measures.evaluation import EvalChange, Overfit
from gdiag.measures.gradient_level import Calming, Surge, calming, surge
from gdiag.measures.gradients import Scaling, scaling, steady, total_of_layers, unscaled
from gdiag.measures.hidden_nan import HiddenNan, without_zeros
from gdiag.measures.layers import LayerScan, scan_layers
from gdiag.measures.loss_events import LossView, loss_view
from gdiag.measures.loss_scale import Skipping
from gdiag.measures.loss_units import EvalUnit, Factor, factors
from gdiag.measures.nonfinite import NonFinite
from gdiag.measures.peak_stability import Instability, Stalled, instability, stalled
from gdiag.measures.resume import FreshStart, Resume, boundaries, with_pauses
from gdiag.measures.resume_state import CounterLoss, ScaleReset
from gdiag.measures.sample_ids import Breach, Return, breaches, inside_epoch, outlasts_training, returns
from gdiag.measures.schedule import Schedule, recognise
from gdiag.measures.scheduler_state import Mismatch, mismatches
from gdiag.measures.segments import interval
from gdiag.measures.trajectory import Trajectory

if TYPE_CHECKING:
    from gdiag.measures.run import RunView


def layers(run: RunView) -> pl.DataFrame:
    """This run's rows of `layers`, all ranks, in file order; without zeros that stand for NaN."""
    own = run.own(run.records.layers)
    return own if run.hidden_nan is None else without_zeros(own, run.hidden_nan)


def trajectory(run: RunView) -> Trajectory:
    """The order of this run's rows: paths, segments, restarts, writers; without zeros that stand for NaN."""
    return (
        run.as_logged if run.hidden_nan is None else trajectories.trajectory(without_zeros(run.steps, run.hidden_nan))
    )


def as_logged(run: RunView) -> Trajectory:
    """The same order of the rows as they were logged, with zeros that stand for NaN."""
    return trajectories.trajectory(run.steps)


def hidden_nan(run: RunView) -> HiddenNan | None:
    """Zeros that the logger wrote in place of NaN losses; None where there are none."""
    path = run.as_logged.paths[0]
    return zeros.hidden_nan(path.curve("loss"), path.curve("grad_norm"))


def paths(run: RunView) -> tuple[Path, ...]:
    """The trajectory, then what restarts took back and other writers' rows."""
    return run.trajectory.paths


def schedule(run: RunView) -> Schedule | None:
    """The plan behind the learning rate and the jumps it does not explain; None when it was not logged."""
    lr = run.series("lr").finite
    return recognise(lr.step, lr.value)


def scheduler_mismatches(run: RunView) -> list[Mismatch]:
    """Restarts after which the learning rate does not go on where it was."""
    return mismatches(run.paths, run.trajectory.restarts, run.schedule)


def peak_instability(run: RunView) -> Instability | None:
    """Loss or gradients out of control while the learning rate reaches its peak."""
    if run.schedule is None:
        return None
    lr, loss, grad = run.series("lr"), run.series("loss"), run.grad_norm
    jump = next((jump for jump in run.schedule.jumps if jump.ratio > 1), None)
    if jump is not None:  # what comes after it is the jump's
        lr, loss, grad = lr.until(jump.step), loss.until(jump.step), grad.until(jump.step)
    return instability(run.schedule, lr, loss, grad)


def peak_stall(run: RunView) -> Stalled | None:
    """A loss that stopped falling before the learning rate reached its peak and never fell again."""
    if run.schedule is None:
        return None
    return stalled(run.schedule, run.series("lr"), run.series("loss"), run.grad_norm)


def gradient_surge(run: RunView) -> Surge | None:
    """Gradients that grow manyfold in the first steps while nothing is learned."""
    if run.schedule is None:
        return None
    return surge(run.schedule, run.series("lr"), run.series("loss"), run.grad_norm)


def gradient_calming(run: RunView) -> Calming | None:
    """Gradients that wander near the peak learning rate and calm when it has fallen."""
    return calming(run.schedule, run.series("lr"), run.grad_norm) if run.schedule else None


def carried_off(run: RunView) -> CarriedOff | None:
    """Weights that the updates carry off; of the norms of all layers where that of the network is not logged.

    None where an unplanned jump of the rate did it, which says more, and where what is counted are no steps of the optimizer.
    """
    if not _counts_updates(run):
        return None
    norm = run.series("param_norm")
    table = run.layer_table("param_norm") if len(norm) <= weights.LEAST_MOVES else None
    if table is not None:
        norm = total_of_layers(table, whole=True)
    found = weights.carried_off(norm.step, norm.value, run.series("lr").finite)
    jumped = run.schedule is not None and any(
        found is not None and jump.ratio > 1 and jump.step <= found.last_step for jump in run.schedule.jumps
    )
    return None if jumped else found


def _counts_updates(run: RunView) -> bool:
    """Whether no file counts epochs or its own rows for want of steps: many updates may lie between two of those."""
    sources = [run.records.sources[i] for i in run.run.sources]
    epochs = any("step" in s.columns and s.columns["step"] == s.columns.get("epoch") for s in sources)
    return not epochs and not any(
        note.startswith(("no step column", "steps are fractions")) for s in sources for note in s.notes
    )


def proven_resumes(run: RunView) -> list[tuple[int, int]]:
    """(first step after, steps rewound) of every place where steps, events or a clock say that the run was resumed."""
    events = run.events
    if events.height and {"kind", "step"} <= set(events.columns):
        events = events.filter((pl.col("kind") == "restart") & pl.col("step").is_not_null())
    steps = events["step"].to_list() if events.height else []
    return boundaries(run.trajectory.restarts, steps, run.series("elapsed"))


def resume_places(run: RunView) -> list[tuple[int, int]]:
    """Those, and the rare pauses as long as a restart takes."""
    return with_pauses(run.proven_resumes, run.series("time"))


def resumes(run: RunView) -> list[Resume]:
    """The loss before and after every place where training was taken up again."""
    return resume.resumes(run.paths, run.resume_places)


def counter_losses(run: RunView) -> list[CounterLoss]:
    """Places where the count of steps does not go on while the model does."""
    return resume_state.counter_losses(run.paths, run.trajectory.restarts)


def begins_trained(run: RunView) -> bool:
    """Whether the first row of the trajectory is that of a model that went on from an earlier segment's end."""
    return any(c.kind == "reset" for c in run.counter_losses)


def scale_resets(run: RunView) -> list[ScaleReset]:
    """Places where the loss scale does not go on from where it was."""
    return resume_state.scale_resets(run.paths, [step for step, _ in run.resume_places])


def fresh_start(run: RunView) -> FreshStart | None:
    """A log that begins late in a run with the loss of an untrained model."""
    return resume.fresh_start(run.series("loss"), run.grad_norm)


def skipping(run: RunView) -> Skipping | None:
    """Skipped steps and halvings of the loss scale; None when there are none."""
    return loss_scale.skipping(run.series("loss_scale"), run.series("skipped"))


def overfit(run: RunView) -> Overfit | None:
    """How far validation has left its best; None with too few evaluations."""
    return evaluation.overfit(run.series("loss"), run.series("eval_loss"))


def eval_change(run: RunView, step: int) -> EvalChange | None:
    """How the validation loss moves at `step`; None without two evaluations on both sides."""
    return evaluation.eval_change(run.series("eval_loss"), step)


def sample_breaches(run: RunView) -> list[Breach]:
    """Places where sample ids fall back or leap ahead."""
    known = [r.step for r in run.trajectory.restarts]
    epoch, time = run.series("epoch"), run.series("time")
    places = [step for step, _ in run.resume_places]
    # Epochs also end in a pause: one counts as a restart here only where that cannot be.
    restarts = [
        step
        for since, step in pairwise([int(time.step[0]) if len(time) else 0, *places])
        if step in known or inside_epoch(epoch, step) or outlasts_training(time, step, since)
    ]
    pauses = [step for step in places if step not in restarts]
    return breaches(run.series("sample_start"), run.series("sample_end"), restarts, pauses)


def sample_returns(run: RunView) -> list[Return]:
    """Loss events at the samples of an earlier one."""
    onsets = sorted({e.onset_step for e in run.losses[0].events})
    return returns(onsets, run.series("sample_start"), run.series("sample_end"), run.series("epoch"))


def loss_factors(run: RunView) -> list[Factor]:
    """Boundaries at which level and noise of the loss change by one integer factor."""
    loss, batch = run.series("loss"), run.series("batch_size")
    changed = batch.step[1:][np.diff(batch.value) != 0][:200]
    jumps = [e.onset_step for e in run.losses[0].events if e.kind != "spike"]
    drops = loss.step[1:][loss.value[1:] < 0.6 * loss.value[:-1]][:50]
    places = [r.step for r in run.trajectory.restarts] + jumps + changed.tolist() + drops.tolist()
    return factors(loss, places, run.grad_norm)


def eval_unit(run: RunView) -> EvalUnit | None:
    """A validation figure in another unit than the training loss."""
    return loss_units.eval_unit(run.series("loss"), run.series("eval_loss"))


def batch_window(run: RunView, step: int) -> Window | None:
    """The sample ids consumed at `step`, None when not logged."""
    return data.batch_window(run.series("sample_start"), run.series("sample_end"), run.series("samples"), step)


def batch_z(run: RunView, statistic: str, step: int) -> float | None:
    """Robust z of a statistic of `step`'s batch against its own history, None when not logged."""
    return own_history_z(run.series(statistic), step)


def losses(run: RunView) -> tuple[LossView, ...]:
    """The loss along every path: scan and events; the trajectory first."""
    first, *others = run.paths
    if not len(first.curve("grad_norm")) and len(run.grad_norm):
        first = first.beside("grad_norm", run.grad_norm)  # only the layers' norms are logged
    return tuple(loss_view(path) for path in (first, *others))


def learning(run: RunView) -> Learning | None:
    """What the loss gained over the trajectory; None for fewer than 60 rows."""
    return changes.learning(run.series("loss").value)


def nonfinite(run: RunView) -> tuple[NonFinite, ...]:
    """Stretches of NaN or infinite losses and norms on every path."""
    return tuple(stretch for path in run.paths for stretch in stretches.nonfinite(path, run.steps))


def grad_scaling(run: RunView) -> Scaling | None:
    """How the logged gradient norm follows the loss scale; None when the scale is not logged or never changes."""
    return scaling(run.series("grad_norm"), run.series("loss_scale"))


def grad_norm(run: RunView) -> Curve:
    """The gradient norm before clipping, divided by the loss scale where it was logged multiplied by it.

    From the per-layer norms where no total is logged.
    """
    logged = run.series("grad_norm")
    if not len(logged) and not len(logged.nonfinite):
        layers = run.layer_table("grad_norm")
        return total_of_layers(layers) if layers is not None else logged
    if run.grad_scaling is not None and run.grad_scaling.scaled:
        return unscaled(logged, run.series("loss_scale"))
    return logged


def update_norm(run: RunView) -> Curve:
    """The update norm, from the per-layer norms where no total is logged."""
    logged, layers = run.series("update_norm"), run.layer_table("update_norm")
    return logged if len(logged) or layers is None else total_of_layers(layers)


def layer_scan(run: RunView) -> LayerScan | None:
    """Every layer's gradient norm against its own history; None when no layer's was logged."""
    layers = run.layer_table("grad_norm")
    return scan_layers(layers) if layers is not None else None


def attribution(run: RunView, step: int, last_step: int) -> Attribution | None:
    """Which layer's gradient rose first around the steps `step` to `last_step`; None when none did."""
    if run.layer_scan is None:
        return None
    return attribute(run.layer_scan, step, last_step, 10 * interval(run.grad_norm.step))


def steady_before(run: RunView, step: int) -> bool:
    """Whether the gradient norm was steady in the rows before `step`: what happens then is no consequence of its turmoil."""
    return steady(run.grad_norm.value[run.grad_norm.step < step])
