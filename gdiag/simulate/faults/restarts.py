"""Restarts, clean and not."""

from __future__ import annotations

from typing import Final

from gdiag.simulate.faults.fault import Fault, needs
from gdiag.simulate.forces import Forces, Lost
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


FAULTS: Final = (
    Fault("resume-clean", "a restart from a checkpoint that changes nothing", _clean, healthy=True, note="clean restart with rewind", tolerated=("log_quality",)),
    Fault("resume-optimizer-lost", "a restart without optimizer state: a spike at the restart", _optimizer, needs("grad")),
    Fault("resume-loader", "a restart whose data loader begins at sample 0 again", _loader, needs("ids"), sudden=False),
    Fault("resume-fresh-model", "a restart with untrained weights", _fresh, needs("grad"), sudden=False),
    Fault("resume-scheduler", "a restart whose schedule begins again with warm-up", _scheduler, needs("lr"), sudden=False),
)  # fmt: skip
