"""Gradients, weights, updates and logits of every tensor, consistent with the global values.

Gradient norms are log-normal about a depth profile, correlated through the global factor and a factor of each block; the
global norm is the root of their squares. Weights follow Adam: a random walk of step learning rate × update RMS against
decoupled decay.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from gdiag.simulate.arrays import Bools, Floats, Ints
from gdiag.simulate.dynamics import Curve
from gdiag.simulate.forces import Forces

_OFFSET: Final = {
    "embedding": 0.0, "position": -1.0, "norm": -3.0, "qkv": -0.5, "proj": 0.3, "fc": -0.1, "out": 0.3, "head": 0.4,
}  # fmt: skip


@dataclass(slots=True)
class Tensors:
    """Per tensor (n, layers), per block (n, blocks), or over all (n,)."""

    grad: Floats
    grad_norm: Floats
    weight: Floats
    weight_norm: Floats
    update: Floats
    update_norm: Floats
    attention: Floats
    output: Floats


def tensors(forces: Forces, curve: Curve) -> Tensors:
    """Every tensor's norms under the run's forces."""
    rng = np.random.default_rng([forces.setup.seed, 303])
    grad = _gradients(forces, curve, rng)
    weight, update = _weights(forces, curve, grad, rng)
    progress = curve.progress / max(1.0, float(curve.progress[-1]))
    attention = np.exp(
        rng.uniform(1.0, 2.2, forces.model.network.blocks)[None, :]
        + 0.8 * np.sqrt(progress)[:, None]
        + 0.06 * rng.standard_normal((forces.n, forces.model.network.blocks))
        + forces.attention
    )
    output = np.exp(2.0 + 0.6 * np.sqrt(progress) + 0.04 * rng.standard_normal(forces.n) + forces.output)
    with np.errstate(invalid="ignore", over="ignore"):
        return Tensors(
            grad=grad,
            grad_norm=np.sqrt((grad**2).sum(axis=1)),
            weight=weight,
            weight_norm=np.sqrt((weight**2).sum(axis=1)),
            update=update,
            update_norm=np.sqrt((update**2).sum(axis=1)),
            attention=attention,
            output=output,
        )


def _gradients(forces: Forces, curve: Curve, rng: np.random.Generator) -> Floats:
    made, n = forces.model, forces.n
    layers = made.network.layers
    depth = np.array([layer.depth for layer in layers], dtype=float) / max(1, made.network.blocks)
    profile = np.array([_OFFSET[layer.kind] for layer in layers]) + rng.uniform(-0.4, 0.2) * depth
    profile += 0.2 * rng.standard_normal(len(layers))
    profile -= 0.5 * np.log((np.exp(profile) ** 2).sum())
    load = 1.0 + 0.08 * rng.standard_normal(len(layers))
    block = 0.04 * rng.standard_normal((n, made.network.blocks + 2))
    for i in range(1, n):
        block[i] = 0.5 * block[i - 1] + 0.866 * block[i]
    own = 0.05 * rng.standard_normal((n, len(layers)))
    index = np.array([layer.depth + 1 for layer in layers])
    exponent = profile + (curve.gain + forces.grad_gain)[:, None] * load + block[:, index] + own + forces.layer_gain
    grad = made.grad * np.exp(np.minimum(exponent, 300.0))
    grad[forces.dead] = 0.0
    grad[:, forces.frozen] = 0.0
    if forces.fp16:
        _overflowed(grad, curve.skipped, index, rng)
    grad[forces.inf_grad] = np.inf
    grad[forces.nan_grad] = np.nan
    return np.asarray(grad, dtype=np.float64)


def _overflowed(grad: Floats, skipped: Bools, index: Ints, rng: np.random.Generator) -> None:
    """A skipped step's gradient is not finite from some block on, backwards to the embedding."""
    for i in np.flatnonzero(skipped):
        grad[i, index <= int(rng.integers(1, index.max() + 1))] = np.inf


def _weights(forces: Forces, curve: Curve, grad: Floats, rng: np.random.Generator) -> tuple[Floats, Floats]:
    made, n = forces.model, forces.n
    size = np.array([layer.size for layer in made.network.layers], dtype=float)
    gain = np.array([layer.kind == "norm" for layer in made.network.layers])
    square = np.where(gain, 1.0, 0.02) ** 2 * size
    weight, update = np.empty((n, len(size))), np.empty((n, len(size)))
    rms = 0.3 * np.exp(0.03 * rng.standard_normal((n, len(size))) + forces.update_gain[:, None])
    broken = False
    rate = forces.rate * made.peak
    finite = np.isfinite(grad).all(axis=1) & np.isfinite(np.where(forces.nan_loss, np.nan, 0.0))
    history = np.empty((n, len(size)))
    for i in range(n):
        if i in forces.restarts:
            square = history[forces.restarts[i]].copy()
        weight[i] = np.sqrt(square) * np.exp(forces.param_gain[i])
        if broken:
            weight[i] = np.nan
        moved = np.where(grad[i] == 0.0, 0.0, rate[i] * rms[i] * np.sqrt(size))
        shrink = rate[i] * forces.decay * np.sqrt(square)
        update[i] = np.where(forces.frozen, 0.0, np.hypot(moved, shrink))
        if curve.skipped[i]:
            update[i] = 0.0
        elif not finite[i]:
            broken, update[i] = True, np.nan
        else:
            # Steps of one direction add up for a while: the walk is faster than white by the momentum's memory.
            grown = (np.sqrt(square) + forces.coherence[i] * moved) ** 2
            square = np.where(
                forces.frozen, square, np.maximum(grown + 6.0 * moved**2 - 2 * shrink * np.sqrt(square), 0.0)
            )
        history[i] = square
    return weight, update
