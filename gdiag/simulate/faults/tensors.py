"""Faults that sit in a layer: overflow, explosion, vanishing, dead, frozen, logit growth, weights."""

from __future__ import annotations

from typing import Final

import numpy as np

from gdiag.simulate.arrays import Floats
from gdiag.simulate.faults.fault import UNSTABLE, Fault, needs
from gdiag.simulate.forces import Forces
from gdiag.simulate.network import Kind
from gdiag.simulate.truth import Event


def _depths(forces: Forces) -> Floats:
    return np.array([layer.depth for layer in forces.model.network.layers], dtype=np.float64)


def _some_block(forces: Forces) -> int:
    return int(forces.rng.integers(forces.model.network.blocks))


def _ramp(forces: Forces, at: int, length: int) -> Floats:
    return np.clip((np.arange(forces.n) - at) / max(1, length), 0.0, 1.0)


def _overflow(forces: Forces) -> list[Event]:
    at, block = forces.pick(0.3, 0.9), _some_block(forces)
    at = min(at + (-at) % forces.setup.every, forces.n - 1 - (forces.n - 1) % forces.setup.every)
    # Backward runs from the head to the embedding: everything from the overflowing block down is not finite.
    forces.inf_grad[at, _depths(forces) <= block] = True
    forces.nan_loss[at + 1 :], forces.nan_grad[at + 1 :] = True, True
    layer = forces.model.network.block(block)
    return [
        Event(
            "nan_overflow",
            ("numeric_overflow",),
            ("nonfinite", "divergence"),
            forces.seen(at),
            layer,
            tolerates_more=True,
        )
    ]


def _explosion(forces: Forces) -> list[Event]:
    at, length = forces.pick(0.1, 0.5), int(forces.rng.integers(80, 300))
    ramp = _ramp(forces, at, length)
    forces.grad_gain += np.log(forces.rng.uniform(50, 2000)) * ramp
    depth = 1.0 - _depths(forces) / forces.model.network.blocks
    forces.layer_gain += ramp[:, None] * 1.5 * depth[None, :]
    forces.shift += forces.size(0.5, 3.0) * _ramp(forces, at + length // 2, length)
    causes = ("gradient_explosion", "lr_too_high", "optimizer_instability")
    return [Event("gradient_explosion", causes, UNSTABLE, forces.seen(at), whole_run=True, tolerates_more=True)]


def _vanishing(forces: Forces) -> list[Event]:
    below = forces.model.network.blocks - _depths(forces)
    forces.layer_gain -= float(forces.rng.uniform(2.5, 4.0)) * below[None, :]
    forces.learning = 0.05 * forces.model.span / forces.n
    forces.sharpness *= 0.3
    layer = forces.model.network.block(0)
    patterns = ("vanishing_gradient", "no_learning", "plateau")
    return [
        Event(
            "vanishing",
            ("vanishing_gradient", "bad_initialization"),
            patterns,
            forces.seen(0),
            layer,
            whole_run=True,
            tolerates_more=True,
        )
    ]


def _dead(forces: Forces) -> list[Event]:
    block = _some_block(forces)
    at = 0 if forces.rng.random() < 0.5 else forces.pick(0.3, 0.7)
    forces.dead[at:, forces.model.network.inside(block)] = True
    forces.shift[at:] += 0.05
    layer = forces.model.network.block(block)
    return [
        Event(
            "dead_layer", ("dead_layer",), ("dead_layer",), forces.seen(at), layer, whole_run=True, tolerates_more=True
        )
    ]


def _frozen(forces: Forces) -> list[Event]:
    block = _some_block(forces)
    forces.frozen[forces.model.network.inside(block)] = True
    forces.config["frozen_modules"] = forces.model.network.block(block)
    return []


def _frozen_bottom(forces: Forces) -> list[Event]:
    """Embedding and lowest blocks left out of the optimizer, as in fine-tuning; nothing says so."""
    top = int(forces.rng.integers(max(1, forces.model.network.blocks - 1)))
    forces.frozen[_depths(forces) <= top] = True
    return []


def _attention(forces: Forces) -> list[Event]:
    at, block = forces.pick(0.3, 0.5), _some_block(forces)
    layer = forces.model.network.find("qkv", block)
    growth = _ramp(forces, at, forces.n - at)
    forces.attention[:, block] += growth * float(forces.rng.uniform(4.0, 6.0))
    forces.layer_gain[:, layer] += growth * 2.5
    forces.lengthen(at, [layer], 2.0)
    late = int(at + 0.45 * (forces.n - at))
    forces.half_life = 15.0
    for place in range(late, forces.n - 5, max(1, (forces.n - late) // 5)):
        forces.kick[place] = forces.size(0.5, 2.0)
        forces.layer_gain[max(0, place - 3) : place + 10, layer] += 1.0
    causes = ("attention_logit_growth", "lr_too_high")
    name = forces.model.network.module(layer)
    return [
        Event(
            "attention_logit_growth",
            causes,
            (*UNSTABLE, "single_spike", "parameter_growth", "layer_outlier"),
            forces.seen(late),
            name,
            whole_run=True,
            tolerates_more=True,
        )
    ]


def _output(forces: Forces) -> list[Event]:
    at = forces.pick(0.5, 0.65)
    layer = forces.model.network.find("head")
    growth = _ramp(forces, at, forces.n - at)
    forces.output += growth * float(forces.rng.uniform(2.0, 3.5))
    forces.lengthen(at, [layer], 2.5)
    forces.layer_gain[:, layer] += growth * 1.2
    late = int(at + 0.5 * (forces.n - at))
    for place in range(late, forces.n - 5, max(1, (forces.n - late) // 4)):
        forces.kick[place] = forces.size(0.4, 1.5)
    patterns = (*UNSTABLE, "single_spike", "parameter_growth", "layer_outlier")
    name = forces.model.network.module(layer)
    return [
        Event(
            "output_logit_growth",
            ("output_logit_growth", "lr_too_high"),
            patterns,
            forces.seen(late),
            name,
            whole_run=True,
            tolerates_more=True,
        )
    ]


def _parameter_growth(forces: Forces) -> list[Event]:
    forces.decay[:] = 0.0
    at = forces.pick(0.2, 0.35)
    long = [i for i, layer in enumerate(forces.model.network.layers) if layer.kind != "norm"]
    forces.lengthen(at, long, float(forces.rng.uniform(2.5, 6.0)))
    causes = ("weight_decay_too_small", "lr_too_high")
    return [
        Event("parameter_growth", causes, ("parameter_growth",), forces.seen(at), whole_run=True, tolerates_more=True)
    ]


def _parameter_shrink(forces: Forces) -> list[Event]:
    """A decay that is far too strong from mid-run on takes from every weight at once."""
    at = forces.pick(0.3, 0.6)
    layers = forces.model.network.layers
    forces.lengthen(
        at, [i for i, layer in enumerate(layers) if layer.kind != "norm"], float(forces.rng.uniform(0.2, 0.5))
    )
    causes = ("config_change",)
    return [Event("parameter_shrink", causes, ("parameter_growth",), forces.seen(at), tolerates_more=True, slow=True)]


def _weight_flip(forces: Forces) -> list[Event]:
    at = forces.pick(0.3, 0.85)
    kinds: tuple[Kind, ...] = ("fc", "out", "qkv", "proj")
    layer = forces.model.network.find(kinds[int(forces.rng.integers(4))], _some_block(forces))
    forces.param_gain[at:, layer] += float(forces.rng.uniform(0.5, 3.0))
    forces.kick[at], forces.half_life = forces.size(0.5, 3.0), float(forces.rng.uniform(5, 30))
    forces.layer_gain[at : at + 10, layer] += 0.7
    patterns = ("divergence", "parameter_jump", "single_spike", "step_up")
    name = forces.model.network.module(layer)
    return [Event("weight_bit_flip", ("silent_data_corruption",), patterns, forces.seen(at), name, tolerates_more=True)]


def _rare_token(forces: Forces) -> list[Event]:
    at = forces.pick(0.3, 0.85)
    layer = forces.model.network.find("embedding")
    forces.layer_gain[at, layer] += np.log(forces.rng.uniform(15, 100))
    forces.excess[at] = forces.size(0.5, 2.0)
    patterns = ("single_spike", "layer_outlier", "gradient_explosion")
    name = forces.model.network.module(layer)
    return [Event("rare_token_embedding", ("bad_batch",), patterns, forces.seen(at), name, data=forces.samples(at))]


def _scale_collapse(forces: Forces) -> list[Event]:
    forces.fp16 = True
    at = forces.pick(0.4, 0.85)
    forces.overflow[at : at + int(forces.rng.integers(20, 120))] = True
    causes = ("loss_scale_collapse", "numeric_overflow")
    return [Event("loss_scale_collapse", causes, ("skipped_steps", "nonfinite"), forces.seen(at), tolerates_more=True)]


def _stale_moments(forces: Forces) -> list[Event]:
    """Gradients fall asleep for hundreds of steps; the first of the old size makes a step that is far too large."""
    length = int(forces.rng.integers(max(60, forces.n // 8), max(61, forces.n // 4)))
    at = forces.pick(0.45, 0.9)
    forces.grad_gain[max(0, at - length) : at] -= float(forces.rng.uniform(0.9, 1.4))
    forces.grad_gain[at : at + 4] += float(forces.rng.uniform(1.2, 1.8))
    forces.update_gain[at : at + 4] += float(np.log(forces.rng.uniform(5, 9)))
    lag = int(forces.rng.integers(1, 4))
    forces.kick[at + lag], forces.half_life = forces.size(0.5, 2.0), float(forces.rng.uniform(8, 30))
    forces.config["adam_beta2"] = "0.999"
    patterns = ("single_spike", "gradient_explosion", "parameter_growth")
    causes = ("optimizer_instability",)
    return [Event("stale_second_moment", causes, patterns, forces.seen(at + lag), tolerates_more=True)]


_LAYERS: Final = needs("grad", "lr", "layers")
_WEIGHTS: Final = _LAYERS | needs("params")
FAULTS: Final = (
    Fault("overflow-layer", "one block overflows in the backward pass, then everything is NaN", _overflow, _LAYERS, sudden=False),
    Fault("gradient-explosion", "gradients grow from the lowest layers on, at an unchanged rate", _explosion, _LAYERS, sudden=False),
    Fault("vanishing-gradient", "each block passes a tenth of the gradient down; nothing is learned", _vanishing, _LAYERS, scratch=True, sudden=False),
    Fault("dead-layer", "a block without gradient, from the start or from mid-run", _dead, _LAYERS, sudden=False),
    Fault("frozen-layer", "a block left out of the optimizer on purpose: no gradient, constant weights, and the config says so", _frozen, _WEIGHTS, True,
          "a frozen block: info at most", ("dead_layer",), sudden=False),
    Fault("frozen-bottom", "embedding and lowest blocks frozen on purpose, and no config says so", _frozen_bottom, _WEIGHTS, True,
          "frozen from below: info at most", ("dead_layer",), sudden=False),
    Fault("attention-logit-growth", "attention logits of one block grow until the loss spikes", _attention, _LAYERS | needs("attention"), sudden=False),
    Fault("output-logit-growth", "output logits and the head grow late in the run", _output, _WEIGHTS | needs("output"), sudden=False),
    Fault("parameter-growth", "weights grow without decay", _parameter_growth, _WEIGHTS, sudden=False),
    Fault("parameter-shrink", "all weights shrink from mid-run on, as under a decay that is far too strong", _parameter_shrink, _WEIGHTS, sudden=False),
    Fault("stale-second-moment", "gradients stay small for long, then one of the old size makes Adam's step far too large", _stale_moments,
          needs("grad", "lr", "updates"), sudden=False),
    Fault("weight-bit-flip", "one weight is corrupted: its tensor's norm jumps", _weight_flip, _WEIGHTS, sudden=False),
    Fault("rare-token", "a rare token's embedding gradient dominates one step", _rare_token, _LAYERS | needs("ids"), sudden=False),
    Fault("loss-scale-collapse", "fp16 overflows step after step down to the smallest scale", _scale_collapse, needs("grad", "lr", "scale"), sudden=False),
)  # fmt: skip
