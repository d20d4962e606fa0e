"""The loss and the global gradient norm of a run under given forces, one executed step after the other.

Loss = power law of the progress made + a floor that follows the learning rate + instability + harm that heals + the hard
batch of the step, then batch noise in proportion. Progress is the learning rate relative to the stable one, summed over
the steps that were not skipped. The instability is one unstable direction of amplitude u: it grows while learning rate
times curvature lies above the stability limit, adds u²/2 to the loss and u to the gradient, so that the gradient shows
it first; curvature then falls (self-stabilisation) and the spike ends, or it does not and the run diverges.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from gdiag.simulate.arrays import Bools, Floats
from gdiag.simulate.forces import Forces
from gdiag.simulate.noise import batch_noise

MAX_FP16 = 65504.0
GROWTH_INTERVAL = 200
"""Good steps after which the loss scale doubles; frameworks use 1000-2000, scaled down to the short runs here."""


@dataclass(slots=True)
class Curve:
    """What the scalar model gives, (n,) each."""

    loss: Floats
    quiet: Floats
    """The loss that this run would have without fault and noise."""
    extra: Floats
    """What the fault adds to it, before noise."""
    sigma: Floats
    """Standard deviation of the batch noise [nat]."""
    gain: Floats
    """Natural logarithm of the global gradient norm over the model's late norm, before layer gains."""
    scale: Floats
    skipped: Bools
    progress: Floats


@dataclass(slots=True)
class _State:
    progress: float = 0.0
    warmth: float = 0.0
    log_u: float = -4.6
    relief: float = 1.0
    harm: float = 0.0
    owed: float = 0.0
    """Harm that the next update does: the first step after a restart still has the loss of the weights that were loaded."""
    scale: float = 65536.0
    good: int = 0
    history: list[tuple[float, ...]] = field(default_factory=list)

    def keep(self) -> None:
        self.history.append((self.progress, self.warmth, self.log_u, self.relief, self.harm, self.scale))

    def restore(self, index: int, forces: Forces) -> None:
        self.progress, self.warmth, self.log_u, self.relief, self.harm, self.scale = self.history[index]
        self.good = 0
        if "model" in forces.lost:
            self.progress = 0.0
        if "optimizer" in forces.lost:
            # Without second moments the first steps are signed and full-size: a kick that scales with the room left.
            self.owed += forces.reset_harm
        if forces.lost & {"optimizer", "scale"}:
            self.scale = forces.initial_scale


def curve(forces: Forces) -> Curve:
    """Run the scalar model; deterministic for a seed."""
    made, n = forces.model, forces.n
    rng = np.random.default_rng([forces.setup.seed, 202])
    noise = batch_noise(forces.setup.noise, n + 1, rng)[forces.batch % (n + 1)]
    replay = rng.standard_normal(n) * (0.0 if forces.deterministic else 0.02)
    grad_noise = rng.standard_normal(n) * made.grad_noise + 0.3 * made.grad_noise * np.clip(noise, -3, 6)
    jitter = rng.standard_normal(n)
    seen: set[int] = set()
    out = Curve(
        loss=np.zeros(n), quiet=np.zeros(n), extra=np.zeros(n), sigma=np.zeros(n), gain=np.zeros(n), scale=np.zeros(n),
        skipped=np.zeros(n, bool), progress=np.zeros(n),
    )  # fmt: skip
    state = _State()
    for i in range(n):
        if i in forces.restarts:
            state.restore(forces.restarts[i], forces)
            # The weights of the checkpoint have not seen what was trained after it.
            seen = set(forces.batch[: forces.restarts[i] + 1].tolist())
        before = state.progress
        quiet, extra, unstable = _advance(state, forces, i, float(jitter[i]))
        batch = int(forces.batch[i])
        familiar = forces.memorised if batch in seen else 0.0
        seen.add(batch)
        out.quiet[i], out.sigma[i] = quiet, made.noise * quiet
        out.extra[i] = extra + float(forces.excess[i]) - familiar
        out.loss[i] = (quiet + float(out.extra[i])) * (1 + made.noise * (float(noise[i]) + float(replay[i])))
        felt = (state.harm + max(0.0, float(forces.shift[i]))) * float(forces.feel[i])
        early = 1.6 * math.exp(-state.progress / (2 * made.span))
        out.gain[i] = (
            early + math.log(math.hypot(1.0, unstable / 0.15)) + math.log1p(2.0 * felt)
            + math.log1p(1.5 * max(0.0, float(forces.excess[i]) * float(forces.feel[i]))) + float(grad_noise[i])
        )  # fmt: skip
        out.skipped[i] = _scaler(
            state, forces, i, made.grad * math.exp(min(50.0, float(out.gain[i]))), float(jitter[i])
        )
        if out.skipped[i]:
            state.progress = before
        state.harm, state.owed = state.harm + state.owed, 0.0
        out.scale[i], out.progress[i] = state.scale, state.progress
        state.keep()
    out.loss = np.maximum(out.loss, 0.01)
    return out


def _advance(state: _State, forces: Forces, i: int, jitter: float) -> tuple[float, float, float]:
    """One step of the state; quiet loss, loss on top of it, amplitude of the unstable direction."""
    made = forces.model
    relative = float(forces.rate[i])
    state.progress += forces.learning * min(relative, 1.3)
    state.warmth += (min(relative, 3.0) - state.warmth) * min(1.0, 0.02 + 0.02 * relative)
    left = (1 + state.progress / made.span) ** -made.power
    quiet = made.floor + (made.start - made.floor) * left + made.lr_floor * state.warmth * (1 - left)
    curvature = 0.35 + 1.2 * math.exp(-state.progress / max(1.0, made.warmup / 6))
    drive = relative * curvature * float(forces.sharpness[i]) * state.relief - 1.0
    state.log_u += 0.5 * min(drive, 1.5) + 0.03 * jitter
    state.log_u = min(max(state.log_u, -4.6), 2.0)
    unstable = math.exp(state.log_u)
    if forces.stabilises and unstable > 1.0:
        state.relief *= 0.7
    if unstable > 1.5:
        # What was learned is lost while the run is unstable.
        state.progress *= 0.995
    state.relief += (1.0 - state.relief) * 0.008
    room = max(0.5, 0.95 * made.ceiling - quiet)
    spike = room * (1 - math.exp(-0.5 * unstable * unstable / room))
    state.harm = state.harm * 0.5 ** (1.0 / forces.half_life) + float(forces.kick[i])
    return quiet, spike + state.harm + float(forces.shift[i]), unstable


def _scaler(state: _State, forces: Forces, i: int, grad: float, jitter: float) -> bool:
    """The fp16 rule: an overflow halves the scale and skips the step, a stretch of good steps doubles it."""
    if not forces.fp16:
        return False
    largest = grad * math.exp(0.35 * jitter) * 0.6 / forces.model.grad
    if bool(forces.overflow[i]) or state.scale * largest > MAX_FP16:
        state.scale, state.good = max(1.0, state.scale / 2), 0
        return True
    state.good += 1
    if state.good >= GROWTH_INTERVAL:
        state.scale, state.good = state.scale * 2, 0
    return False
