"""A whole simulated run: curve, tensors, times, replicas and telemetry that belong together."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gdiag.simulate.arrays import Floats
from gdiag.simulate.dynamics import Curve, curve
from gdiag.simulate.forces import Forces
from gdiag.simulate.layers import Tensors, tensors
from gdiag.simulate.timing import Times, times


@dataclass(slots=True)
class Trajectory:
    """Everything that a log may hold, by executed step."""

    forces: Forces
    curve: Curve
    tensors: Tensors
    times: Times
    loss: Floats
    """Reduced over replicas, NaN where the run's loss is NaN."""
    rank_loss: Floats
    rank_grad: Floats
    checksum: Floats
    eval_loss: dict[int, float]
    """Executed step → loss on held-out data."""
    entropy: Floats
    duplicates: Floats
    memory: Floats


def run(forces: Forces) -> Trajectory:
    """Simulate a run under `forces`."""
    made = forces.model
    rng = np.random.default_rng([forces.setup.seed, 505])
    scalars = curve(forces)
    state = tensors(forces, scalars)
    loss = np.where(forces.nan_loss, np.nan, scalars.loss)
    local = scalars.sigma[:, None] * math.sqrt(made.ranks) * rng.standard_normal((forces.n, made.ranks)) * 0.5
    local -= local.mean(axis=1, keepdims=True)
    rank_loss = loss[:, None] + local + forces.rank_excess - forces.rank_excess.mean(axis=1, keepdims=True)
    with np.errstate(invalid="ignore", over="ignore"):
        rank_grad = state.grad_norm[:, None] * np.exp(
            math.log(1.35) + 0.08 * rng.standard_normal((forces.n, made.ranks)) + forces.rank_grad
        )
    walk = 3000.0 + np.cumsum(rng.standard_normal(forces.n)) * 0.05
    walk[~np.isfinite(state.weight_norm)] = np.nan
    return Trajectory(
        forces=forces,
        curve=scalars,
        tensors=state,
        times=times(forces, forces.farm.clocks if forces.farm is not None else None),
        loss=loss,
        rank_loss=rank_loss,
        rank_grad=rank_grad,
        checksum=walk[:, None] * (1 + forces.checksum),
        eval_loss=_evaluations(forces, scalars, rng),
        entropy=4.2 + 0.05 * rng.standard_normal(forces.n) + forces.entropy,
        duplicates=np.clip(_usual_duplicates(forces) + forces.duplicates, 0.0, 1.0),
        memory=6e10 * np.exp(0.002 * rng.standard_normal(forces.n) + forces.memory),
    )


def _usual_duplicates(forces: Forces) -> Floats:
    """Share of repeated tokens of ordinary text: a few percent, skewed."""
    rng = np.random.default_rng([forces.setup.seed, 707])
    return np.asarray(0.02 * rng.gamma(4.0, 0.25, forces.n), dtype=np.float64)


def _evaluations(forces: Forces, scalars: Curve, rng: np.random.Generator) -> dict[int, float]:
    """About thirty evaluations: the clean level with the harm that the weights carry, little noise."""
    gap = max(forces.setup.every, forces.setup.steps // 30)
    out: dict[int, float] = {}
    for i in range(gap, forces.n, gap):
        level = float(scalars.quiet[i]) + float(forces.shift[i]) + float(forces.eval_shift[i])
        broken = bool(forces.eval_nan[i]) or bool(forces.nan_loss[i])
        out[i] = math.nan if broken else level * (1.02 + 0.004 * float(rng.standard_normal()))
    return out
