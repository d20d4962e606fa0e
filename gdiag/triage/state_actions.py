"""What to do about weights and data: return to a checkpoint, leave samples out, replay a step, or go on."""

from __future__ import annotations

from typing import Final

from gdiag.triage import own_figures as own
from gdiag.triage import state
from gdiag.triage.case import Case
from gdiag.triage.loss_sentences import after_effect
from gdiag.triage.machine_actions import handled
from gdiag.triage.rate_actions import check_lr
from gdiag.triage.sentences import lone_jump


def roll_back(case: Case) -> str:
    """Return to the last checkpoint before the onset, not before the peak; a lone NaN that left no trace needs none."""
    if case.value("isolated", "GD101", "GD204") is True and not case.find("GD104", "GD105", "GD201"):
        return "The rows after it are finite: go on, no rollback is needed unless it returns"
    if handled(case):
        return "No rollback is needed for an error that the hardware handled"
    if lone_jump(case) is not None:
        return "No rollback is needed: the gradient is back at once and the loss does not follow"
    ended = case.last is None or case.facts.last_step is None or case.last >= case.facts.last_step
    if _skipped(case) and not ended:
        return f"No rollback is needed: the loss stays finite, and the updates skipped in steps {case.onset}–{case.last} left the weights as they were"
    if _skipped(case):
        return f"No rollback is needed: the loss stays finite, so every update since step {case.onset} was skipped and the weights are those of then"
    if case.lead.code == "GD103" and state.comes_back(case):
        return "Nothing to roll back: the loss comes back after each spike; what is changed is changed from the latest checkpoint on"
    if state.over(case):
        if after_effect(case) is not None and case.number("regained_step") is None:
            left = case.number("after_effect") or 0.0
            return f"Go on: the loss is back{state.by_step(case)} but for {left:+.3f} nat; return to {state.return_point(case)} only where that matters"
        if state.gap_of_recovery(case) is not None:
            return keep_going(case)
        again = "" if state.from_start(case) else f"; return to {state.return_point(case)} only if it happens again"
        return f"Nothing to roll back: the level is regained{state.by_step(case)}{again}"
    if state.from_start(case):
        return "Start again: there is no state before the fault to go back to"
    before = " (before the onset, not the peak)" if case.onset is not None else ""
    return f"Roll back to {state.return_point(case)}{before}"


def _skipped(case: Case) -> bool:
    """Whether all that is not finite are gradients whose updates the scaler skipped."""
    lost = case.find("GD101")
    scaled = case.find("GD112") is not None
    return (
        scaled
        and (case.number("rows", "GD101") == 0 or (lost is None and case.lead.code == "GD112"))
        and not case.find(*MOVED[1:])
    )


def return_or_evaluate(case: Case) -> str:
    """Training that stays finite is not rolled back for its evaluation."""
    if case.value("training_finite", "GD111") is True:
        return f"Evaluate {state.return_point(case)} and the one after it in FP32; look for empty batches (0/0), longer sequences and masks of only padding"
    return roll_back(case)


def skip_samples(case: Case) -> str:
    """Skip the onset's data, by sample ids where logged."""
    if case.data is not None and case.value("recovered", "GD102") is True:
        return f"Leave samples {case.data.first_sample}–{case.data.last_sample - 1} out of the next run, or of this one if it is rolled back for another reason"
    if case.data is not None:
        return f"Skip samples {case.data.first_sample}–{case.data.last_sample - 1} (or 200–500 batches around them) and go on"
    if case.onset is None:
        return "Skip the batches around the onset and go on"
    if _period(case) is not None:
        return "Leave that shard out, or skip the batches of these steps in each round, and go on"
    lasts = case.last is not None and case.last > case.onset
    span = f"batches of steps {case.onset}–{case.last}" if lasts else f"batch of step {case.onset}"
    if case.value("recovered", "GD102") is True:
        return f"Leave the {span} out of the next run, or of this one if it is rolled back for another reason"
    return f"Skip the {span} (PaLM skipped 200–500) and go on"


def inspect_batch(case: Case) -> str:
    """Look at the data before blaming it."""
    if (period := _period(case)) is not None:
        steps = case.value("onsets", "GD103") or case.value("steps", "GD106")
        few = ", ".join(str(steps).split(", ")[:3])
        return f"Find what the run reads every {period:.0f} steps: the batches of steps {few} … share a shard, a file or the end of an epoch; filter it if it is garbled"
    if case.data is not None:
        return f"Inspect samples {case.data.first_sample}–{case.data.last_sample - 1}: token mix, length, repeats, encoding; filter their source if it is garbled"
    return "Find the onset's batch from the loader's seed and position and inspect its token mix, length and repeats; filter its source if it is garbled, and log sample ids from now on"


def restore_loader(case: Case) -> str:
    """Where the data are read twice: at a resume, or by one rank for ever."""
    if case.value("kind", "GD402") == "sinks":
        return f"Compare the sample ids and the loader's workers of rank {case.rank} with another rank's since step {case.onset}: it may be given the same batch again and again; the other ranks' gradients were averaged with it"
    return own.drop_repeated(case)


def keep_going(case: Case) -> str:
    """A recovered spike needs no rollback."""
    if case.value("kind", "GD402") == "sinks":
        return restore_loader(case)
    if case.value("recovered", "GD102") is False:
        return roll_back(case)
    if (gap := state.gap_of_recovery(case)) is not None:
        return f"Look up what was done between steps {gap[0]} and {gap[1]}, which this log leaves out: the loss came back there, by itself or by a rollback"
    if (period := _period(case)) is not None and case.onset is not None and case.last is not None:
        due = case.onset + period * (1 + (case.last - case.onset) // period)
        return f"Each spike is over by itself: no rollback is needed, and the next is due near step {due:.0f}"
    if lone_jump(case) is not None:
        return "The loss does not follow: go on, no rollback is needed unless such jumps return"
    if case.find(*MOVED) is None:
        return "The loss stays at its level: go on, no rollback is needed unless such jumps return"
    return "The loss recovered: go on, no rollback is needed unless spikes return"


MOVED: Final = ("GD101", "GD102", "GD103", "GD104", "GD105", "GD106", "GD109")
"""Findings of a loss that left its level."""


def _period(case: Case) -> float | None:
    """Steps from one spike or far row to the next where they come at equal distances."""
    return case.number("period", "GD103", "GD106")


def replay_batch(case: Case) -> str:
    """Replay decides between data, state and hardware."""
    step = f"step {case.onset}" if case.onset is not None else "the onset step"
    mine = case.host or (f"that of rank {case.rank}" if case.rank is not None else "")
    other = f"another node than {mine}" if mine else "another node"
    return f"Replay {step} from {state.return_point(case)} on {other}: the same spike speaks for data and state, a clean step for hardware"


def after_rate(case: Case) -> str:
    """What updates at a rate that cannot be have spoilt; empty where another change is told of."""
    return roll_back(case) if case.find("GD309") is not None else ""


def resume_again(case: Case) -> str:
    """What to bring back: the schedule where only the rate moved, else the weights."""
    return check_lr(case) if case.lead.code in {"GD302", "GD306"} else own.load_again(case)


def unless_loaded(case: Case) -> str:
    """A rollback where no checkpoint is to be loaded again anyway."""
    return "" if resume_again(case).startswith(("Load ", "Save and load")) and not state.over(case) else roll_back(case)
