"""Faults that show in the loss: spikes, bad data, divergence, non-finite values."""

from __future__ import annotations

from typing import Final

import numpy as np

from gdiag.simulate.faults.fault import Fault, needs
from gdiag.simulate.forces import Forces
from gdiag.simulate.truth import Event

_ANY_SPIKE: Final = ("bad_batch", "optimizer_instability", "lr_too_high", "attention_logit_growth", "unknown")
_DIVERGENT: Final = ("lr_too_high", "gradient_explosion", "optimizer_instability", "unknown")


def _spike(forces: Forces) -> list[Event]:
    at = forces.pick(0.3, 0.85)
    forces.half_life = float(forces.rng.uniform(5, 40))
    forces.kick[at] = forces.size(0.1, 4.0)
    return [Event("spike", _ANY_SPIKE, ("single_spike",), forces.seen(at))]


def _small_spike(forces: Forces) -> list[Event]:
    at = forces.pick(0.3, 0.85)
    length = int(forces.rng.integers(20, 45))
    forces.excess[at : at + length] = forces.size(0.2, 1.0)
    forces.feel[:] = 0.0
    return [Event("small_spike", _ANY_SPIKE, ("single_spike",), forces.seen(at))]


def _point(forces: Forces) -> list[Event]:
    at = forces.pick(0.3, 0.85)
    forces.excess[at] = forces.size(3.0, 40.0)
    return [Event("point_spike", (*_ANY_SPIKE, "silent_data_corruption"), ("single_spike",), forces.seen(at))]


def _repeated(forces: Forces) -> list[Event]:
    count = int(forces.rng.integers(4, 8))
    first, gap = int(0.25 * forces.n), int(0.6 * forces.n / count)
    forces.half_life = float(forces.rng.uniform(5, 20))
    places = [first + gap * k + int(forces.rng.integers(-gap // 6, gap // 6 + 1)) for k in range(count)]
    for at in places:
        forces.kick[at] = forces.size(0.5, 3.0)
    causes = ("lr_too_high", "optimizer_instability", "attention_logit_growth", "bad_batch")
    return [
        Event("repeated", causes, ("repeated_spikes",), forces.seen(places[0]), whole_run=True, tolerates_more=True)
    ]


def _nan(forces: Forces) -> list[Event]:
    at = forces.pick(0.3, 0.9)
    forces.nan_loss[at:], forces.nan_grad[at:] = True, True
    causes = ("numeric_overflow", "gradient_explosion", "unknown")
    return [Event("nan", causes, ("nonfinite",), forces.seen(at), tolerates_more=True)]


def _nan_after_rise(forces: Forces) -> list[Event]:
    at = forces.pick(0.3, 0.9)
    rise = int(forces.rng.integers(6, 8 + forces.n // 90))
    ramp = np.linspace(0.0, 1.0, rise)
    forces.grad_gain[at - rise : at] += np.log(forces.rng.uniform(200, 5000)) * ramp
    forces.shift[at - rise : at] += forces.size(1.0, 4.0) * ramp**3
    forces.nan_loss[at:], forces.nan_grad[at:] = True, True
    causes = ("gradient_explosion", "numeric_overflow", "lr_too_high", "optimizer_instability")
    return [Event("nan_after_rise", causes, ("nonfinite",), forces.seen(at), tolerates_more=True)]


def _nan_step(forces: Forces) -> list[Event]:
    at = forces.pick(0.3, 0.9)
    at += (forces.setup.every - 1 - at) % forces.setup.every + 1 if forces.setup.every > 1 else 0
    at = min(at, forces.n - 1 - (forces.n - 1) % forces.setup.every)
    forces.nan_loss[at], forces.nan_grad[at] = True, True
    forces.fp16 = False
    return [Event("nan_step", ("bad_batch", "numeric_overflow", "unknown"), ("nonfinite",), forces.seen(at))]


def _divergence(forces: Forces) -> list[Event]:
    at = forces.pick(0.35, 0.8)
    forces.sharpness[at:] *= float(forces.rng.uniform(6, 20)) / np.maximum(forces.rate[at:], 0.1)
    forces.stabilises = False
    return [Event("divergence", _DIVERGENT, ("divergence", "step_up"), forces.seen(at), slow=True, tolerates_more=True)]


def _slow_divergence(forces: Forces) -> list[Event]:
    at = forces.pick(0.25, 0.5)
    done = np.linspace(0.0, 1.0, forces.n - at)
    level = forces.level()
    forces.shift[at:] += level[at] - level[at:] + forces.size(0.3, 2.0) * done ** float(forces.rng.uniform(0.8, 1.5))
    causes = (*_DIVERGENT, "weight_decay_too_small")
    return [
        Event(
            "slow_divergence", causes, ("divergence", "step_up"), forces.seen(at), whole_run=True, tolerates_more=True
        )
    ]


def _step_up(forces: Forces) -> list[Event]:
    at = forces.pick(0.35, 0.8)
    forces.shift[at:] += forces.size(0.15, 1.2)
    forces.feel[:] = float(forces.rng.choice([0.0, 0.3]))
    causes = ("config_change", "data_repeated", "resume_mismatch", "optimizer_instability", "data_order", "unknown")
    return [Event("step_up", causes, ("step_up", "divergence"), forces.seen(at))]


def _bad_batch(forces: Forces) -> list[Event]:
    at = forces.pick(0.25, 0.9)
    forces.excess[at] = forces.size(1.5, 7.0)
    forces.entropy[at] = float(forces.rng.choice([-3.5, 1.8]))
    return [Event("bad_batch", ("bad_batch",), ("single_spike",), forces.seen(at), data=forces.samples(at))]


def _bad_shard(forces: Forces) -> list[Event]:
    at, length = forces.pick(0.25, 0.85), int(forces.rng.integers(5, 16))
    forces.excess[at : at + length] = forces.size(0.6, 4.0)
    forces.entropy[at : at + length] = float(forces.rng.choice([-2.5, 1.2]))
    forces.kick[at + length] = 0.15
    window = forces.samples(at, at + length)
    return [Event("bad_shard", ("bad_batch",), ("single_spike", "hard_batches"), forces.seen(at), data=window)]


def _duplicates(forces: Forces) -> list[Event]:
    """Repeated n-grams: the loss of the batch itself may be low, the step that it makes is not."""
    at, length = forces.pick(0.25, 0.85), int(forces.rng.integers(1, 6))
    forces.excess[at : at + length] = forces.size(0.8, 4.0)
    forces.duplicates[at : at + length] = float(forces.rng.uniform(0.3, 0.8))
    forces.kick[at + length] = 0.1
    window = forces.samples(at, at + length)
    return [Event("duplicate_tokens", ("bad_batch",), ("single_spike", "hard_batches"), forces.seen(at), data=window)]


_IDS: Final = needs("ids", "entropy", "grad")
FAULTS: Final = (
    Fault("spike", "the loss jumps by --amplitude nats and recovers in some tens of steps", _spike, needs("grad")),
    Fault("small-spike", "the loss rises a little for thirty steps, the gradient does not", _small_spike, needs("grad")),
    Fault("point-spike", "one step of a much higher loss, nothing after", _point, needs("grad")),
    Fault("repeated-spikes", "four to seven spikes at similar distances", _repeated, needs("grad")),
    Fault("nan", "loss and gradients are NaN from one step to the next", _nan, needs("grad"), sudden=False),
    Fault("nan-after-rise", "the gradient grows a thousandfold, then everything is NaN", _nan_after_rise, needs("grad"), sudden=False),
    Fault("nan-step", "a single step is NaN", _nan_step, sudden=False),
    Fault("divergence", "the run becomes unstable and does not come back", _divergence, needs("grad", "lr"), sudden=False),
    Fault("slow-divergence", "the loss creeps up to the end", _slow_divergence, needs("grad"), sudden=False),
    Fault("step-up", "the loss moves to a higher level and stays", _step_up),
    Fault("bad-batch", "one garbled batch; sample ids and token entropy are logged", _bad_batch, _IDS),
    Fault("bad-shard", "five to fifteen bad batches in a row", _bad_shard, _IDS),
    Fault("duplicate-tokens", "a few batches of repeated tokens; sample ids and the share of duplicates are logged", _duplicates, needs("ids", "duplicates", "grad")),
)  # fmt: skip
