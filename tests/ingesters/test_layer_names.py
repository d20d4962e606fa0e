"""Kinds of layers by their names."""

from __future__ import annotations

import pytest

from gdiag.ingesters.layer_names import block, kind
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


NAMINGS: dict[LayerKind, str] = {
    "attention_qkv": (
        "gpt_neox.layers.3.attention.query_key_value.weight decoder.layers.0.self_attention.linear_qkv.weight "
        "language_model.encoder.layers.7.self_attention.query_key_value.weight "
        "transformer.h.11.attn.c_attn.weight model.layers.2.self_attn.q_proj.weight "
        "bert.encoder.layer.5.attention.self.query.weight encoder.block.0.layer.0.SelfAttention.q.weight "
        "decoder.block.3.layer.1.EncDecAttention.k.weight vit.encoder.layer.4.attention.attention.query.weight "
        "blocks.9.attn.qkv.weight transformer.blocks.3.att_proj.weight blocks.3.attention.w_q.weight "
        "layers.6.attention.wq.weight layers.6.attention.wkv_b.weight decoder.layers.3.self_attn.k_proj.weight "
        "params/transformer/h/3/attn/c_attn/kernel params/decoder/layers_3/self_attention/query/kernel "
        "blocks.2.attn.qkvo_w model.layers.1.self_attn.kv_a_proj_with_mqa.weight "
        "model.layers.1.self_attn.kv_b_proj.weight transformer.h.2.self_attention.query_key_value.weight "
        "transformer.blocks.2.attn.Wqkv.weight encoder.layers.2.self_attn.in_proj_weight "
        "visual.transformer.resblocks.3.attn.in_proj_weight "
    ),
    "attention_output": (
        "gpt_neox.layers.3.attention.dense.weight sequential.5.attention.dense.weight "
        "decoder.layers.0.self_attention.linear_proj.weight "
        "language_model.encoder.layers.7.self_attention.dense.weight transformer.h.11.attn.c_proj.weight "
        "model.layers.2.self_attn.o_proj.weight bert.encoder.layer.5.attention.output.dense.weight "
        "encoder.block.0.layer.0.SelfAttention.o.weight decoder.block.3.layer.1.EncDecAttention.o.weight "
        "vit.encoder.layer.4.attention.output.dense.weight blocks.9.attn.proj.weight "
        "transformer.blocks.3.attn_out.weight blocks.3.attention.w_out.weight layers.6.attention.wo.weight "
        "decoder.layers.3.self_attn.out_proj.weight decoder.layers.3.encoder_attn.out_proj.weight "
        "params/decoder/layers_3/self_attention/out/kernel params/decoder/layers/self_attention/out/kernel "
        "model/encoder/block/0/layer/0/SelfAttention/o/kernel transformer/layers/4/self_attn/o_proj/weight "
        "_orig_mod.transformer.h.0.attn.c_proj.weight transformer.h.2.self_attention.dense.weight "
        "model.decoder.layers.2.self_attn.out_proj.weight model.layers.2.self_attn.dense.weight "
        "transformer.h.2.attn.out_proj.weight transformer.blocks.2.attn.out_proj.weight "
        "attention.out_proj.weight layers.2.attention.wo.weight "
        "visual.transformer.resblocks.3.attn.out_proj.weight "
    ),
    "mlp": (
        "gpt_neox.layers.3.mlp.dense_h_to_4h.weight decoder.layers.0.mlp.linear_fc1.weight "
        "decoder.layers.4.mlp.router.weight decoder.layers.4.mlp.experts.linear_fc1.weight3 "
        "transformer.h.11.mlp.c_fc.weight transformer.h.11.mlp.c_proj.weight "
        "model.layers.2.mlp.down_proj.weight bert.encoder.layer.5.intermediate.dense.weight "
        "bert.encoder.layer.5.output.dense.weight roberta.encoder.layer.1.output.dense.weight "
        "decoder.block.3.layer.2.DenseReluDense.wi_0.weight decoder.block.3.layer.2.DenseReluDense.wo.weight "
        "vit.encoder.layer.4.output.dense.weight blocks.9.mlp.fc1.weight transformer.blocks.3.ff_proj.weight "
        "transformer.blocks.3.ff_out.weight blocks.3.feed_forward.w1.weight layers.6.feed_forward.w2.weight "
        "layers.6.moe.router.gate.weight decoder.layers.3.fc1.weight params/decoder/layers_3/mlp/wi_0/kernel "
        "params/decoder/layers_3/mlp/wo/kernel model.layers.1.block_sparse_moe.gate.weight "
        "model.layers.1.block_sparse_moe.experts.7.w2.weight model.layers.1.mlp.experts.7.down_proj.weight "
        "model.layers.1.mlp.gate.weight model.layers.1.mlp.shared_experts.up_proj.weight "
        "transformer.h.2.mlp.dense_4h_to_h.weight transformer.h.2.mlp.fc_in.weight "
        "transformer.blocks.2.ffn.up_proj.weight layers.2.linear1.weight "
    ),
    "embedding": (
        "gpt_neox.embed_in.weight sequential.0.word_embeddings.weight embedding.word_embeddings.weight "
        "embedding.position_embeddings.weight language_model.embedding.word_embeddings.weight "
        "transformer.wte.weight transformer.wpe.weight model.embed_tokens.weight "
        "bert.embeddings.word_embeddings.weight shared.weight "
        "vit.embeddings.patch_embeddings.projection.weight vit.embeddings.cls_token patch_embed.proj.weight "
        "pos_embed cls_token embeddings.weight tok_embeddings.weight decoder.embed_tokens.weight "
        "decoder.embed_positions.weight params/token_embedder/embedding backbone.embedding.weight "
        "transformer.word_embeddings.weight model.decoder.embed_positions.weight token_embedding.weight "
        "positional_embedding "
    ),
    "lm_head": (
        "embed_out.weight output_layer.weight language_model.output_layer.weight lm_head.weight "
        "cls.predictions.decoder.weight lm_head.dense.weight classifier.weight head.weight "
        "transformer.ff_out.weight lm_head.w_out.weight output.weight decoder.output_projection.weight "
        "params/decoder/logits_dense/kernel "
    ),
    "norm": (
        "gpt_neox.final_layer_norm.weight gpt_neox.layers.3.input_layernorm.weight "
        "decoder.final_layernorm.weight decoder.layers.4.self_attention.q_layernorm.weight "
        "transformer.h.11.ln_1.weight transformer.ln_f.weight model.layers.2.post_attention_layernorm.weight "
        "model.layers.2.self_attn.q_norm.weight model.norm.weight bert.embeddings.LayerNorm.weight "
        "bert.encoder.layer.5.attention.output.LayerNorm.weight encoder.final_layer_norm.weight "
        "blocks.9.norm1.weight norm.weight transformer.blocks.3.q_norm.weight blocks.3.attention_norm.weight "
        "blocks.3.attention.q_norm.weight layers.6.ffn_norm.weight "
        "decoder.layers.3.self_attn_layer_norm.weight decoder.layer_norm.weight "
        "params/decoder/decoder_norm/scale params/decoder/layers_3/pre_self_attention_layer_norm/scale "
        "backbone.norm_f.weight backbone.layers.9.norm.weight model.layers.1.self_attn.kv_a_layernorm.weight "
        "transformer.word_embeddings_layernorm.weight "
    ),
    "block": "backbone.layers.9.mixer.in_proj.weight backbone.layers.9.mixer.dt_proj.weight backbone.layers.9.mixer.A_log",
}  # fmt: skip
"""Parameters of GPT-NeoX, Megatron-LM, GPT-2, LLaMA, BERT, T5, ViT, timm, OLMo, torchtitan, fairseq, Flax, MaxText, nanoGPT,
Mamba, Mixtral, DeepSeek, Falcon, BLOOM, OPT, MPT and CLIP, as their own code names them."""


@pytest.mark.parametrize(("expected", "layer"), [(k, name) for k, names in NAMINGS.items() for name in names.split()])
def test_every_naming_tells_the_kind(expected: LayerKind, layer: str) -> None:
    assert kind(layer) == expected


@pytest.mark.parametrize(
    ("layer", "number"),
    [
        ("gpt_neox.layers.3.attention.dense.weight", 3), ("transformer.h.11.attn.c_attn.weight", 11),
        ("encoder.block.2.layer.0.SelfAttention.q.weight", 2), ("bert.encoder.layer.5.output.dense.weight", 5),
        ("params/decoder/layers_3/mlp/wi_0/kernel", 3), ("backbone.layers.9.mixer.out_proj.weight", 9),
        ("model.layers.1.mlp.experts.7.down_proj.weight", 1), ("visual.transformer.resblocks.3.attn.in_proj_weight", 3),
    ],
)  # fmt: skip
def test_every_naming_tells_the_block(layer: str, number: int) -> None:
    assert block(layer) == number
