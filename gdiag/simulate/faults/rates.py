"""Faults of the learning rate and its schedule."""

from __future__ import annotations

from typing import Final

import numpy as np

from gdiag.simulate.faults.fault import UNSTABLE, Fault, needs
from gdiag.simulate.forces import Forces
from gdiag.simulate.truth import Event


def _too_high(forces: Forces) -> list[Event]:
    factor = float(np.exp(forces.rng.uniform(np.log(6), np.log(40))))
    forces.rate *= factor
    forces.stabilises = factor < 10
    warm = forces.model.warmup
    at = int(np.argmax(forces.rate * 0.4 > 1.0))
    return [
        Event(
            "lr_too_high",
            ("lr_too_high",),
            UNSTABLE,
            forces.seen(min(at, warm + 5)),
            whole_run=True,
            tolerates_more=True,
        )
    ]


def _jump(forces: Forces) -> list[Event]:
    at = forces.pick(0.35, 0.8)
    length = int(forces.rng.choice([20, 60, 200, forces.n]))
    factor = float(np.exp(forces.rng.uniform(np.log(8), np.log(40)))) / max(0.2, float(forces.rate[at]))
    forces.rate[at : at + length] *= factor
    patterns = (
        "divergence",
        "lr_discontinuity",
        "nonfinite",
        "single_spike",
        "step_up",
        "repeated_spikes",
        "gradient_explosion",
    )
    return [Event("lr_jump", ("lr_jump",), patterns, forces.seen(at), tolerates_more=True)]


def _no_warmup(forces: Forces) -> list[Event]:
    forces.rate[: forces.model.warmup] = 1.0
    forces.stabilises = False
    # The curvature of an untrained network needs small steps to come down; with large ones it stays, for long or for good.
    stays = 1.0 if forces.rng.random() < 0.4 else float(forces.rng.uniform(0.04, 0.2))
    forces.sharpness[: int(stays * forces.n)] = float(forces.rng.uniform(4.0, 8.0))
    forces.shift[:] = 0.3
    return [
        Event(
            "no_warmup",
            ("missing_warmup", "lr_too_high"),
            (*UNSTABLE, "single_spike"),
            forces.seen(0),
            whole_run=True,
            tolerates_more=True,
        )
    ]


def _decayed_early(forces: Forces) -> list[Event]:
    at = forces.pick(0.15, 0.35)
    ramp = np.clip((np.arange(forces.n) - at) / max(1, 0.05 * forces.n), 0.0, 1.0)
    forces.rate *= 1 - ramp * (1 - 10 ** float(forces.rng.uniform(-4, -2.3)))
    return [Event("decayed_early", ("lr_decayed_early",), ("plateau", "no_learning"), forces.seen(at), slow=True)]


def _too_low(forces: Forces) -> list[Event]:
    forces.rate /= float(np.exp(forces.rng.uniform(np.log(500), np.log(5000))))
    return [
        Event(
            "lr_too_low",
            ("lr_too_low",),
            ("no_learning", "plateau"),
            forces.seen(0),
            whole_run=True,
            tolerates_more=True,
        )
    ]


_SEEN: Final = needs("grad", "lr")
FAULTS: Final = (
    Fault("lr-too-high", "peak rate 6 to 40 times above the stable one: repeated spikes or divergence", _too_high, _SEEN, sudden=False),
    Fault("lr-jump", "the rate jumps by a factor of 8 to 40 for a while or for good", _jump, _SEEN, sudden=False),
    Fault("no-warmup", "full rate from the first step", _no_warmup, _SEEN, scratch=True, sudden=False),
    Fault("lr-decayed-early", "the rate falls to nothing after a quarter of the run", _decayed_early, _SEEN, sudden=False),
    Fault("lr-too-low", "the rate is hundreds of times too low to learn", _too_low, _SEEN, scratch=True, sudden=False),
)  # fmt: skip
