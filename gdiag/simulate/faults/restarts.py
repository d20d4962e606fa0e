"""Restarts, clean and not."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from gdiag.simulate.faults.fault import Fault, needs
from gdiag.simulate.forces import Forces, Lost
from gdiag.simulate.schedules import schedule
from gdiag.simulate.truth import Event


def _resume(forces: Forces, *lost: Lost) -> int:
    total = forces.setup.steps
    every = forces.setup.every
    back = int(forces.rng.integers(0, max(2, total // 20))) // every * every
    at = int(forces.rng.integers(int(0.35 * total), int(0.75 * total))) // every * every
    return forces.rewind(at, back, set(lost))


def _clean(forces: Forces) -> list[Event]:
    at = _resume(forces)
    return [
        Event("resume", ("resume_mismatch", "unknown"), ("resume_jump", "log_quality"), forces.seen(at), benign=True)
    ]


def _optimizer(forces: Forces) -> list[Event]:
    at = _resume(forces, "optimizer")
    forces.reset_harm, forces.half_life = forces.size(0.3, 2.0), float(forces.rng.uniform(8, 40))
    return [
        Event(
            "optimizer_lost",
            ("optimizer_state_lost", "resume_mismatch"),
            ("resume_jump", "single_spike"),
            forces.seen(at),
        )
    ]


def _replayed(forces: Forces) -> list[Event]:
    """Steps trained again on a deterministic machine: the first gives its loss again, the updates after it are not those of before."""
    every = forces.setup.every
    at = forces.pick(0.4, 0.75) // every * every
    forces.rewind(at, every * int(forces.rng.integers(15, 40)), set())
    forces.deterministic = True
    forces.kick[at + 1], forces.half_life = forces.size(0.08, 0.6), float(forces.rng.uniform(4, 8) * every)
    causes = ("optimizer_state_lost",)
    patterns = ("resume_jump", "single_spike", "step_up")
    return [Event("replayed_without_moments", causes, patterns, forces.seen(at), tolerates_more=True)]


def _loader(forces: Forces) -> list[Event]:
    at = _resume(forces, "loader")
    forces.memorised = forces.size(0.15, 0.5)
    patterns = ("resume_jump", "step_up", "log_quality")
    return [
        Event(
            "loader_not_resumed", ("data_repeated", "resume_mismatch"), patterns, forces.seen(at), tolerates_more=True
        )
    ]


def _fresh(forces: Forces) -> list[Event]:
    at = _resume(forces, "model", "optimizer")
    forces.reset_harm = 0.3
    return [
        Event(
            "fresh_model",
            ("resume_mismatch",),
            ("resume_jump", "step_up", "divergence"),
            forces.seen(at),
            tolerates_more=True,
        )
    ]


def _scheduler(forces: Forces) -> list[Event]:
    at = _resume(forces, "scheduler")
    patterns = ("lr_discontinuity", "resume_jump", "lr_schedule")
    return [
        Event(
            "scheduler_not_restored",
            ("resume_mismatch", "lr_jump", "config_change"),
            patterns,
            forces.seen(at),
            tolerates_more=True,
        )
    ]


def _twice(forces: Forces) -> list[Event]:
    """From the restart on the schedule is stepped once per replica or micro-batch."""
    at = _resume(forces)
    times = int(forces.rng.integers(2, 5))
    made, total = forces.model, forces.setup.steps
    begin = int(forces.step[at]) - made.first_step
    ahead = np.minimum(begin + times * np.arange(forces.n - at, dtype=np.int64), total - 1)
    forces.model = made = replace(made, shape="cosine" if made.shape in ("constant", "wsd") else made.shape)
    forces.rate[:at] = schedule(made.shape, total, made.warmup, made.last, forces.step[:at] - made.first_step)
    forces.rate[at:] = schedule(made.shape, total, made.warmup, made.last, ahead)
    patterns = ("lr_discontinuity", "resume_jump", "plateau")
    causes = ("resume_mismatch", "lr_jump", "lr_decayed_early")
    return [Event("scheduler_stepped_twice", causes, patterns, forces.seen(at), tolerates_more=True)]


def _counter(forces: Forces) -> list[Event]:
    """The count of steps begins again; the schedule with it in half of the runs."""
    at = forces.pick(0.4, 0.75) // forces.setup.every * forces.setup.every
    lost: set[Lost] = {"counter", "scheduler"} if forces.rng.random() < 0.5 else {"counter"}
    forces.rewind(at, 0, lost)
    patterns = ("resume_jump", "lr_discontinuity")
    causes = ("step_counter_lost", "resume_mismatch")
    return [Event("step_counter_lost", causes, patterns, forces.seen(at), tolerates_more=True)]


def _scale(forces: Forces) -> list[Event]:
    forces.fp16 = True
    forces.initial_scale = float(2 ** int(forces.rng.integers(22, 33)))
    at = _resume(forces, "scale")
    patterns = ("skipped_steps", "resume_jump")
    causes = ("loss_scale_lost", "loss_scale_collapse")
    return [Event("scale_not_restored", causes, patterns, forces.seen(at), tolerates_more=True)]


def _older(forces: Forces) -> list[Event]:
    """The weights of a much earlier checkpoint under the right step and schedule."""
    at = _resume(forces)
    forces.restarts = {at: int(forces.rng.uniform(0.12, 0.3) * forces.setup.steps)}
    patterns = ("resume_jump", "step_up")
    return [Event("older_checkpoint", ("resume_mismatch",), patterns, forces.seen(at), tolerates_more=True)]


FAULTS: Final = (
    Fault("resume-clean", "a restart from a checkpoint that changes nothing", _clean, healthy=True, note="clean restart with rewind", tolerated=("log_quality",)),
    Fault("resume-optimizer-lost", "a restart without optimizer state: a spike at the restart", _optimizer, needs("grad")),
    Fault("resume-replayed", "steps trained again: the same first loss, then worse, as without the optimizer's state", _replayed, sudden=False),
    Fault("resume-loader", "a restart whose data loader begins at sample 0 again", _loader, needs("ids"), sudden=False),
    Fault("resume-fresh-model", "a restart with untrained weights", _fresh, needs("grad"), sudden=False),
    Fault("resume-scheduler", "a restart whose schedule begins again with warm-up", _scheduler, needs("lr"), sudden=False),
    Fault("resume-scheduler-twice", "a restart from which the schedule moves two to four times as fast", _twice, needs("lr"), sudden=False),
    Fault("resume-step-counter", "a restart that counts its steps from the beginning while the model goes on", _counter, needs("lr"), sudden=False, scratch=True),
    Fault("resume-scale", "an fp16 restart with the scaler's initial loss scale: steps are skipped until it fits", _scale, needs("scale"), sudden=False),
    Fault("resume-older-checkpoint", "a restart with the weights of a much earlier checkpoint", _older, needs("grad"), sudden=False, scratch=True),
)  # fmt: skip
