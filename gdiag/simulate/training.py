"""The training run that a seed stands for: what is asked for, and the model behind it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gdiag.simulate.network import NAMES, Network, network
from gdiag.simulate.noise import SCALES, Noise
from gdiag.simulate.schedules import Shape


@dataclass(frozen=True, slots=True)
class Setup:
    """What the caller asks for."""

    seed: int = 0
    steps: int = 2000
    every: int = 1
    style: str = "plain"
    noise: Noise = "gauss"
    amplitude: float | None = None
    """Nats, for faults with a size; None: drawn from the seed."""


@dataclass(frozen=True, slots=True)
class Model:
    """The training run that a seed stands for, before any fault."""

    network: Network
    start: float
    """Loss at initialisation [nat]."""
    floor: float
    """Irreducible loss [nat]."""
    ceiling: float
    """Loss of a model that knows nothing: where an unstable run ends up, from scratch or fine-tuned [nat]."""
    power: float
    span: float
    """Progress, in steps at the peak rate, after which the power law bends."""
    lr_floor: float
    """Nats that the peak learning rate adds to the floor: what its decay gives back."""
    peak: float
    shape: Shape
    warmup: int
    last: float
    """Share of the peak at the end of the schedule."""
    noise: float
    """Noise of the loss relative to its level."""
    grad: float
    """Global gradient norm late in training."""
    grad_noise: float
    clip: float
    batch: int
    length: int
    step_time: float
    ranks: int
    clock: float
    """Unix time of the first step."""
    weight_decay: float
    first_step: int


def model(setup: Setup) -> Model:
    """The model of a seed; faults draw from another stream, so that a seed's healthy run is the twin of its faulty ones."""
    rng = np.random.default_rng([setup.seed, 101])
    vocabulary, floor = ((256, 1.05), (32000, 2.2), (50304, 2.6), (128256, 2.1))[int(rng.integers(4))]
    naming = sorted(NAMES)[int(rng.integers(len(NAMES)))]
    ceiling = math.log(vocabulary)
    start = ceiling + float(rng.uniform(0.0, 0.1))
    if setup.noise == "sft":
        start, floor = float(rng.uniform(1.5, 2.4)), float(rng.uniform(0.7, 1.1))
    warmup = max(10, int(setup.steps * rng.uniform(0.01, 0.06)))
    low, high = SCALES[setup.noise]
    shapes: tuple[Shape, ...] = ("cosine", "cosine", "linear", "wsd", "constant", "sqrt")
    return Model(
        network=network(int(rng.integers(3, 7)), int(rng.choice([128, 256, 512, 1024])), vocabulary, naming),
        start=start,
        ceiling=ceiling,
        floor=floor * float(rng.uniform(0.9, 1.15)),
        power=float(rng.uniform(0.4, 0.7)),
        span=setup.steps / float(rng.uniform(60, 200)),
        lr_floor=float(rng.uniform(0.03, 0.2)),
        peak=float(10 ** rng.uniform(-4.3, -2.7)),
        shape=shapes[int(rng.integers(len(shapes)))],
        warmup=warmup,
        last=float(rng.choice([0.0, 0.1, 0.1, 0.2])),
        noise=float(rng.uniform(low, high)),
        grad=float(10 ** rng.uniform(-0.7, 0.6)),
        grad_noise=float(rng.uniform(0.05, 0.14)),
        clip=1.0,
        batch=int(rng.choice([16, 64, 256, 512])),
        length=int(rng.choice([512, 1024, 2048, 4096])),
        step_time=float(rng.uniform(0.4, 6.0)),
        ranks=int(rng.choice([4, 8])),
        clock=1_780_000_000.0 + float(rng.integers(0, 900_000)),
        weight_decay=0.1,
        first_step=int(rng.integers(2)),
    )
