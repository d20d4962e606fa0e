"""Evidence and places of loss events: shared by the analyzers of the loss."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from gdiag.measures.continuation import continuation
from gdiag.measures.loss_events import LossEvent, LossView
from gdiag.measures.onset import Onset, onset_context
from gdiag.measures.resume import earlier_stretch
from gdiag.measures.run import RunView
from gdiag.model import Location, Measure, Severity


def unit_of(event: LossEvent) -> str:
    """'nat' for a loss that can be a cross-entropy, '' for one that goes below zero."""
    return "nat" if float(event.curve.value.min()) > 0 else ""


def amount(value: float, unit: str) -> str:
    """A figure with three significant digits and its unit."""
    return f"{value:.3g} {unit}".rstrip()


def context(event: LossEvent, view: LossView) -> Onset:
    """What the other columns say at the event's onset."""
    return onset_context(event.path, event.onset_step, event.step(event.peak), view.every)


CYCLE_ROWS = 50
"""Rows after the start of a schedule's new cycle in which a rise is the cycle's."""


def multiplied(run: RunView, view: LossView, event: LossEvent) -> int | None:
    """The factor by which level and noise of the loss are multiplied at the onset: another unit, not another model."""
    if event.path.kind != "trajectory":
        return None
    near = (f for f in run.loss_factors if f.up and abs(f.step - event.onset_step) <= 2 * view.every)
    return next((f.factor for f in near), None)


def planned(run: RunView, view: LossView, event: LossEvent) -> bool:
    """Whether the run's own plan explains the rise: a new cycle of a schedule with restarts, or longer sequences."""
    schedule = run.schedule
    if schedule is not None and schedule.shape == "restarts":
        reach = CYCLE_ROWS * view.every
        if any(-view.every <= event.onset_step - start <= reach for start in schedule.changes):
            return True
    ratio = context(event, view).seq_len_ratio
    return ratio is not None and abs(ratio - 1) > 0.05 and event.kind != "divergence"


def alarm(run: RunView, view: LossView, event: LossEvent) -> Severity:
    """Warning, or info for what the run's plan or a change of the loss's unit explains."""
    explained = planned(run, view, event) or multiplied(run, view, event) is not None
    return Severity.INFO if explained else Severity.WARNING


def place(run: RunView, event: LossEvent) -> Location:
    """The event's rows in the file, from onset to end."""
    onset = event.curve.finite
    time = event.path.curve("time")
    location = run.where(onset.row(event.onset), last_step=event.last_step, time=time.at(event.onset_step))
    return location


def onset_measures(found: Onset) -> list[Measure]:
    """The measures of an onset that are known."""
    named = (
        ("grad_ratio", found.grad_ratio, "", 10.0), ("grad_lead", found.grad_lead, "step", 2.0),
        ("lr_at_onset", found.lr, "", None), ("lr_share_of_peak", found.lr_share_of_peak, "", None),
        ("lr_ratio", found.lr_ratio, "", None), ("sample_start", found.sample_start, "", None),
        ("sample_end", found.sample_end, "", None), ("token_entropy_z", found.token_entropy_z, "", 4.0),
        ("batch_ratio", found.batch_ratio, "", None), ("seq_len_ratio", found.seq_len_ratio, "", None),
    )  # fmt: skip
    return [Measure(name, value, unit, limit) for name, value, unit, limit in named if value is not None]


def event_measures(run: RunView, view: LossView, event: LossEvent, z: float) -> tuple[Measure, ...]:
    """Everything a loss event is held against, under the standard evidence names; `z` is the limit it was held to."""
    unit = unit_of(event)
    measures = [
        Measure("peak_excess", event.excess, unit, z * event.noise),
        Measure("peak_step", event.step(event.peak), "step"),
        Measure("z", event.z, "", z),
        Measure("rows", event.rows),
        Measure("noise", event.noise, unit),
        Measure("level_before", event.level, unit),
        Measure("recovered", event.recovery is not None),
        Measure("log_interval", view.every, "step"),
        Measure("lone_row", event.lone),
    ]
    if planned(run, view, event):
        measures.append(Measure("planned", True))
    factor = multiplied(run, view, event)
    if factor is not None:
        measures.append(Measure("factor", factor))
    if event.kind != "spike" and not event.slow:
        measures += _moved(event)
    if event.kind == "spike" and event.excess > 0:
        first = float(event.curve.value[event.onset]) - event.level
        measures.append(Measure("first_share", first / event.excess))
    if math.isfinite(event.level_after):
        measures.append(Measure("level_after", event.level_after, unit))
    if event.recovery is not None:
        measures.append(Measure("recovery_step", event.step(event.recovery), "step"))
    regained = event.regained if event.kind != "spike" else None
    if regained is not None:
        measures.append(Measure("regained_step", event.step(regained), "step"))
    if event.half_life is not None:
        measures += [
            Measure("half_life", event.half_life[0] * view.every, "step"),
            Measure("half_life_to", event.half_life[1] * view.every, "step"),
        ]
    if math.isfinite(event.after_effect):
        measures.append(Measure("after_effect", event.after_effect, unit, max(event.noise, 0.0)))
    measures += onset_measures(context(event, view))
    measures += validation_measures(run, event)
    measures += place_measures(run, event)
    return tuple(measures)


EARLY_ROWS = 6
"""Rows at their old level that an onset may come before the leap, where it is placed with the first row that stands out."""


def _moved(event: LossEvent) -> Iterable[Measure]:
    """How the loss gets to its new level, and how it goes on from there."""
    yield Measure("at_once", _at_once(event))
    like = earlier_stretch(event.curve, event.onset) if event.path.kind == "trajectory" else None
    if like is not None:
        yield Measure("like_step", event.step(like), "step")
    seen = continuation(event.curve, event.path.curve("grad_norm"), event.onset, event.level)
    if seen is None:
        return
    yield Measure("noise_ratio", seen.noise_ratio)
    yield Measure("level_kept", seen.kept)
    if seen.grad_level is not None:
        yield Measure("grad_level_ratio", seen.grad_level)
    if seen.grad_roughness is not None:
        yield Measure("grad_roughness_ratio", seen.grad_roughness)


def _at_once(event: LossEvent) -> bool:
    """Whether the loss leaps to its new level from one row to the next rather than climbing there over some."""
    rows = event.curve.value[event.onset : event.onset + 24] - event.level
    if len(rows) < 9:
        return False
    levels = np.median(np.lib.stride_tricks.sliding_window_view(rows, 5), axis=1)
    highest = float(np.quantile(levels, 0.8))  # the largest of twenty is high by chance where rows are noisy
    low = np.append(np.abs(rows[:EARLY_ROWS]) < 0.3 * highest, False)
    leap = int(np.argmin(low))
    return float(np.median(rows[leap : leap + 3])) >= 0.7 * highest


def validation_measures(run: RunView, event: LossEvent) -> Iterable[Measure]:
    """How validation moves where the training level moves for good; nothing for what recovers or is not evaluated, nor
    for a slow rise, most of which comes after the evaluations that follow its onset."""
    if event.kind == "spike" or event.slow or event.path.kind != "trajectory":
        return
    change = run.eval_change(event.onset_step)
    if change is not None:
        yield Measure("eval_before", change.before, unit_of(event))
        yield Measure("eval_after", change.after, unit_of(event))
        yield Measure("eval_z", round(change.z, 2), "", 3.0)


def place_measures(run: RunView, event: LossEvent) -> Iterable[Measure]:
    """Where the event lies: in a stretch that a restart took back, or right after a restart."""
    if event.path.kind == "tail":
        yield Measure("taken_back", True)
        yield Measure("steps_lost", int(event.curve.step[-1]) - event.path.judged_from + 1, "step")
        return
    if event.path.kind == "writer":
        yield Measure("other_writer", True)
        return
    end = event.step(event.recovery) if event.recovery is not None else event.last_step
    yield Measure("steps_lost", max(1, end - event.onset_step), "step")
    restarts = [r.step for r in run.trajectory.restarts if r.step <= event.onset_step]
    if restarts:
        yield Measure("steps_since_restart", event.onset_step - restarts[-1], "step")
