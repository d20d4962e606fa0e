"""Kinds of layers by their names."""

from __future__ import annotations

import pytest

from gdiag.ingesters.layer_names import kind
from gdiag.schema import LayerKind


@pytest.mark.parametrize(
    ("layer", "expected"),
    [
        ("model.layers.5.self_attn.q_proj.weight", "attention_qkv"),
        ("model.layers.5.self_attn.k_proj.weight", "attention_qkv"),
        ("model.layers.5.self_attn.v_proj", "attention_qkv"),
        ("model.layers.5.self_attn.o_proj.weight", "attention_output"),
        ("transformer.h.0.attn.c_attn.weight", "attention_qkv"),
        ("transformer.h.0.attn.c_proj.weight", "attention_output"),
        ("gpt_neox.layers.0.attention.dense.weight", "attention_output"),
        ("encoder.layer.3.attention.self.query.weight", "attention_qkv"),
        ("encoder.layer.3.attention.output.dense.weight", "attention_output"),
        ("decoder.layers.2.self_attention.linear_qkv.weight", "attention_qkv"),
        ("blocks.0.attn_proj", "attention_output"),
        ("blocks.0.proj", "attention_output"),
    ],
)
def test_attention_projections_are_told_apart(layer: str, expected: LayerKind) -> None:
    assert kind(layer) == expected
