"""Healthy runs, plain ones and ones with traps for false alarms."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from gdiag.simulate.faults.fault import Fault, needs
from gdiag.simulate.forces import Forces
from gdiag.simulate.schedules import schedule
from gdiag.simulate.truth import Event


def _healthy(_forces: Forces) -> list[Event]:
    return []


def _step_schedule(forces: Forces) -> list[Event]:
    made = forces.model = replace(forces.model, lr_floor=0.35)
    done = schedule("step", forces.setup.steps, made.warmup, made.last, forces.step - made.first_step)
    # A third at each corner: the loss drops and goes on falling, unlike after a rate that is as good as zero.
    forces.rate = np.where(forces.step - made.first_step < made.warmup, done, done ** np.log10(3.0))
    return []


def _hard_batches(forces: Forces) -> list[Event]:
    hard = forces.rng.random(forces.n) < 0.01
    hard[: forces.n // 10] = False
    forces.excess = np.where(hard, forces.size(0.5, 2.0) * forces.rng.uniform(0.6, 1.4, forces.n), 0.0)
    return [
        Event(
            "hard_batches",
            ("bad_batch", "unknown"),
            ("hard_batches",),
            forces.seen(int(np.argmax(hard))),
            whole_run=True,
            benign=True,
        )
    ]


def _backoff(forces: Forces) -> list[Event]:
    forces.fp16 = True
    return []


def _batch_ramp(forces: Forces) -> list[Event]:
    # A longer context from half-way: steps take longer and carry more tokens, by configuration.
    at = forces.n // 2
    forces.compute[at:] += 0.01
    forces.comm[at:] += 0.02
    return []


FAULTS: Final = (
    Fault("healthy", "nothing is wrong", _healthy, healthy=True),
    Fault("healthy-step-schedule", "step schedule; the loss drops with each step of it", _step_schedule, needs("lr"), True,
          "step schedule: the loss drops with each step of it"),
    Fault("hard-batches", "one batch in a hundred is hard; no batch leaves a trace", _hard_batches, healthy=True,
          note="isolated hard batches: info at most"),
    Fault("fp16-backoff", "fp16 whose loss scale backs off now and then, as it should", _backoff, needs("grad", "scale"), True,
          "ordinary fp16 back-off"),
    Fault("healthy-small-change", "step time changes by 1 % half-way", _batch_ramp, needs("time"), True, "a change below what matters"),
)  # fmt: skip
