"""What acts on a simulated run: its undisturbed conditions, which a fault then bends."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from gdiag.simulate.arrays import Bools, Floats, Ints
from gdiag.simulate.schedules import schedule
from gdiag.simulate.telemetry import Farm
from gdiag.simulate.training import Model, Setup

Lost = Literal["optimizer", "loader", "model", "scheduler", "scale", "counter"]
Group = Literal[
    "grad", "lr", "time", "parts", "layers", "params", "updates", "ranks", "checksum", "ids", "entropy", "eval", "scale",
    "attention", "output", "tokens", "memory", "duplicates",
]  # fmt: skip
"""A group of columns that is logged or not."""


@dataclass(slots=True)
class Forces:
    """Conditions over the executed steps, n of them in the order of execution: rewinds make n larger than the run.

    Arrays over steps are (n,), over layers (n, layers), over replicas (n, ranks). Gains are natural logarithms added to
    the undisturbed value, `excess`, `kick` and `shift` are nats of loss.
    """

    setup: Setup
    model: Model
    rng: np.random.Generator
    step: Ints = field(init=False)
    batch: Ints = field(init=False)
    """Number of the data batch consumed: the same number is the same data."""
    rate: Floats = field(init=False)
    """Share of the peak learning rate, as scheduled and as disturbed; 1 is the stable rate: at 10 the run trains ten times too fast."""
    deterministic: bool = False
    """Whether a step that is trained again on the same batch and weights gives the same loss to the last digit."""
    learning: float = 1.0
    """Share of each step that is progress."""
    excess: Floats = field(init=False)
    """Same-step loss of a hard batch: leaves no trace in the weights."""
    kick: Floats = field(init=False)
    """Harm to the weights that shows from this step on and heals."""
    half_life: float = 10.0
    shift: Floats = field(init=False)
    """Lasting change of level."""
    feel: Floats = field(init=False)
    """How much the gradient norm feels harm: 1 as usual, 0 not at all."""
    sharpness: Floats = field(init=False)
    """Factor on the curvature."""
    stabilises: bool = True
    """Whether curvature falls during an instability, which ends it."""
    grad_gain: Floats = field(init=False)
    update_gain: Floats = field(init=False)
    """Gain of every update over what the rate gives: a second moment that lags behind."""
    layer_gain: Floats = field(init=False)
    param_gain: Floats = field(init=False)
    dead: Bools = field(init=False)
    """Tensors that receive no gradient (n, layers)."""
    frozen: Bools = field(init=False)
    """Tensors left out of the optimizer: their weights stay as they are (layers,)."""
    nan_loss: Bools = field(init=False)
    nan_grad: Bools = field(init=False)
    inf_grad: Bools = field(init=False)
    overflow: Bools = field(init=False)
    """Steps whose forward pass overflows fp16, whatever the loss scale."""
    attention: Floats = field(init=False)
    """Gain of the largest attention logit (n, blocks)."""
    output: Floats = field(init=False)
    decay: Floats = field(init=False)
    """Weight decay of each tensor (layers,)."""
    coherence: Floats = field(init=False)
    """Share of each update that points along the weights and lengthens them (n, layers)."""
    eval_shift: Floats = field(init=False)
    eval_nan: Bools = field(init=False)
    compute: Floats = field(init=False)
    comm: Floats = field(init=False)
    data: Floats = field(init=False)
    pause: Floats = field(init=False)
    """Seconds added to a step."""
    rank_compute: Floats = field(init=False)
    rank_excess: Floats = field(init=False)
    rank_grad: Floats = field(init=False)
    checksum: Floats = field(init=False)
    """Relative difference of each replica's parameter checksum (n, ranks)."""
    entropy: Floats = field(init=False)
    """Shift of the batch's token entropy [nat]."""
    duplicates: Floats = field(init=False)
    """Share of the batch's tokens that repeat others, on top of the usual one."""
    memory: Floats = field(init=False)
    restarts: dict[int, int] = field(default_factory=dict)
    """Executed step → executed step whose state was restored."""
    lost: set[Lost] = field(default_factory=set)
    """What a restart did not restore."""
    reset_harm: float = 0.9
    """Nats that a restart without optimizer state costs at first."""
    initial_scale: float = 65536.0
    """Loss scale that a run without one begins with."""
    fp16: bool = False
    memorised: float = 0.15
    """Nats that a batch seen before is easier."""
    averaged: bool = False
    """The logged loss is the mean since the last log."""
    hide_nan: bool = False
    """A NaN loss is logged as 0, as the HF Trainer's filter does."""
    stale: bool = False
    """Skipped steps repeat the last good gradient norm."""
    scaled: bool = False
    """Gradient norms are logged as multiplied by the loss scale."""
    config: dict[str, str] = field(default_factory=dict)
    """Settings written as config.yaml beside the log."""
    log: set[Group] = field(default_factory=set)
    layer_every: int = 1
    farm: Farm | None = None
    """GPUs whose telemetry is written beside the log and whose clocks set the pace."""
    port_errors: Floats | None = None
    """Packets that a port receives damaged in each step (n,): its counters are then written beside the log."""

    def __post_init__(self) -> None:
        """Lay out an undisturbed run."""
        self.lay_out(np.arange(self.setup.steps, dtype=np.int64))

    def lay_out(self, order: Ints) -> None:
        """Undisturbed conditions over `order`, the executed steps counted from 0; resets every force."""
        made, n = self.model, len(order)
        layers, blocks, ranks = len(made.network.layers), made.network.blocks, made.ranks
        self.step, self.batch = order + made.first_step, order.copy()
        self.rate = schedule(made.shape, self.setup.steps, made.warmup, made.last, order)
        for name in (
            "excess", "kick", "shift", "grad_gain", "output", "eval_shift", "compute", "comm", "data", "pause", "entropy",
            "memory", "duplicates",
            "update_gain",
        ):  # fmt: skip
            setattr(self, name, np.zeros(n))
        self.feel, self.sharpness = np.ones(n), np.ones(n)
        self.layer_gain, self.param_gain = np.zeros((n, layers)), np.zeros((n, layers))
        self.dead, self.frozen = np.zeros((n, layers), bool), np.zeros(layers, bool)
        self.nan_loss, self.eval_nan, self.overflow = np.zeros(n, bool), np.zeros(n, bool), np.zeros(n, bool)
        self.nan_grad, self.inf_grad = np.zeros((n, layers), bool), np.zeros((n, layers), bool)
        self.attention = np.zeros((n, blocks))
        plain = np.array([layer.kind in ("norm", "position") for layer in made.network.layers])
        self.decay, self.coherence = np.where(plain, 0.0, made.weight_decay), np.zeros((n, layers))
        self.rank_compute, self.rank_excess, self.rank_grad = (np.zeros((n, ranks)) for _ in range(3))
        self.checksum = np.zeros((n, ranks))

    def rewind(self, at: int, back: int, lost: set[Lost]) -> int:
        """A restart after executed step `at - 1` from a checkpoint `back` steps earlier; the executed step it resumes at."""
        total = self.setup.steps
        self.lay_out(np.concatenate([np.arange(at), np.arange(at - back, total)]).astype(np.int64))
        self.restarts, self.lost = {at: at - back - 1}, lost
        if "loader" in lost:
            self.batch[at:] = np.arange(len(self.step) - at)
        made = self.model
        if "scheduler" in lost:
            fresh = np.arange(len(self.step) - at, dtype=np.int64)
            self.rate[at:] = schedule(made.shape, total, made.warmup, made.last, fresh)
        if "counter" in lost:
            self.step[at:] -= int(self.step[at]) - made.first_step
        return at

    @property
    def n(self) -> int:
        """Executed steps."""
        return len(self.step)

    def lengthen(self, at: int, layers: list[int], ratio: float) -> None:
        """Let tensors grow to about `ratio` times their length from executed step `at` to the end, by the optimizer's steps.

        Where the learning rate is too small for that the model gets a larger one.
        """
        travelled = 0.3 * float(self.rate[at:].sum())
        self.model = replace(self.model, peak=max(self.model.peak, (ratio - 1) * 0.04 / (0.5 * travelled)))
        self.coherence[at:, layers] = (ratio - 1) * 0.04 / (self.model.peak * travelled)

    def level(self) -> Floats:
        """The loss that the undisturbed run would have, (n,), without noise [nat]; its floor follows the rate at once."""
        made = self.model
        progress = np.cumsum(np.minimum(self.rate, 1.3)) * self.learning
        left: Floats = (1 + progress / made.span) ** -made.power
        return made.floor + (made.start - made.floor) * left + made.lr_floor * self.rate * (1 - left)

    def pick(self, low: float, high: float) -> int:
        """A random executed step between two shares of the run."""
        return int(self.rng.integers(int(low * self.n), max(int(low * self.n) + 1, int(high * self.n))))

    def size(self, low: float, high: float) -> float:
        """The amplitude asked for, else one drawn log-uniformly [nat]."""
        if self.setup.amplitude is not None:
            return self.setup.amplitude
        return float(np.exp(self.rng.uniform(math.log(low), math.log(high))))

    def seen(self, at: int) -> int:
        """Step number of the first logged row at or after executed step `at`."""
        every, first = self.setup.every, self.model.first_step
        step = int(self.step[min(at, self.n - 1)])
        return first + math.ceil((step - first) / every) * every

    def samples(self, at: int, until: int | None = None) -> tuple[int, int]:
        """Sample ids of the batches at executed steps `at` to `until` (exclusive; default: one batch)."""
        last = self.batch[(until if until is not None else at + 1) - 1]
        return int(self.batch[at]) * self.model.batch, (int(last) + 1) * self.model.batch
