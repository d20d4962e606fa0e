"""The simulated transformer: its tensors in forward order, under the names that different code bases give them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Kind = Literal["embedding", "position", "norm", "qkv", "proj", "fc", "out", "head"]

NAMES: Final[dict[str, dict[str, str]]] = {
    "nano": {
        "embedding": "wte", "position": "wpe", "block": "blocks.{i}", "norm1": "ln1", "qkv": "qkv", "proj": "proj",
        "norm2": "ln2", "fc": "fc", "out": "out", "final": "ln_f", "head": "lm_head",
    },
    "gpt2": {
        "embedding": "transformer.wte.weight", "position": "transformer.wpe.weight", "block": "transformer.h.{i}",
        "norm1": "ln_1.weight", "qkv": "attn.c_attn.weight", "proj": "attn.c_proj.weight", "norm2": "ln_2.weight",
        "fc": "mlp.c_fc.weight", "out": "mlp.c_proj.weight", "final": "transformer.ln_f.weight", "head": "lm_head.weight",
    },
    "llama": {
        "embedding": "model.embed_tokens.weight", "position": "", "block": "model.layers.{i}",
        "norm1": "input_layernorm.weight", "qkv": "self_attn.q_proj.weight", "proj": "self_attn.o_proj.weight",
        "norm2": "post_attention_layernorm.weight", "fc": "mlp.up_proj.weight", "out": "mlp.down_proj.weight",
        "final": "model.norm.weight", "head": "lm_head.weight",
    },
    "megatron": {
        "embedding": "embedding.word_embeddings.weight", "position": "embedding.position_embeddings.weight",
        "block": "decoder.layers.{i}", "norm1": "input_layernorm.weight", "qkv": "self_attention.linear_qkv.weight",
        "proj": "self_attention.linear_proj.weight", "norm2": "pre_mlp_layernorm.weight", "fc": "mlp.linear_fc1.weight",
        "out": "mlp.linear_fc2.weight", "final": "decoder.final_layernorm.weight", "head": "output_layer.weight",
    },
}  # fmt: skip
"""Naming → part → tensor name; `block` is the prefix of a block's parts. Empty: the architecture lacks the part."""


@dataclass(frozen=True, slots=True)
class Layer:
    """One logged tensor."""

    name: str
    kind: Kind
    depth: int
    """Block number; -1 for embeddings, the number of blocks for the final norm and the head."""
    size: int
    """Number of parameters."""


@dataclass(frozen=True, slots=True)
class Network:
    """Tensors in forward order."""

    layers: tuple[Layer, ...]
    blocks: int
    naming: str
    vocabulary: int

    def block(self, index: int) -> str:
        """The logged prefix of a block: blocks.0."""
        return NAMES[self.naming]["block"].format(i=index)

    def module(self, index: int) -> str:
        """The module that a tensor belongs to: its name without `.weight`."""
        return self.layers[index].name.removesuffix(".weight")

    def find(self, kind: Kind, depth: int | None = None) -> int:
        """Index of the first tensor of a kind, in a given block where `depth` is given."""
        return next(
            i for i, layer in enumerate(self.layers) if layer.kind == kind and (depth is None or layer.depth == depth)
        )

    def inside(self, depth: int) -> list[int]:
        """Indices of the tensors of one block."""
        return [i for i, layer in enumerate(self.layers) if layer.depth == depth]


def network(blocks: int, width: int, vocabulary: int, naming: str) -> Network:
    """A decoder-only transformer with `blocks` blocks."""
    names = NAMES[naming]
    layers = [Layer(names["embedding"], "embedding", -1, vocabulary * width)]
    if names["position"]:
        layers.append(Layer(names["position"], "position", -1, 1024 * width))
    parts: tuple[tuple[str, Kind, int], ...] = (
        ("norm1", "norm", width), ("qkv", "qkv", 3 * width * width), ("proj", "proj", width * width),
        ("norm2", "norm", width), ("fc", "fc", 4 * width * width), ("out", "out", 4 * width * width),
    )  # fmt: skip
    for i in range(blocks):
        prefix = names["block"].format(i=i)
        layers += [Layer(f"{prefix}.{names[part]}", kind, i, size) for part, kind, size in parts]
    layers.append(Layer(names["final"], "norm", blocks, width))
    layers.append(Layer(names["head"], "head", blocks, vocabulary * width))
    return Network(tuple(layers), blocks, naming, vocabulary)
