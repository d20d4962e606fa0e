"""Kinds of layers by their names."""

from __future__ import annotations

import pytest

from gdiag.ingesters.layer_names import _patterns, clean, parse
from gdiag.ingesters.layer_places import block, catalogue, kind
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


PUBLIC: dict[LayerKind, str] = {
    "attention_qkv": (
        "blocks.3.attn.qkv.weight layers.0.blocks.1.attn.qkv.weight stages.2.blocks.3.attn.qkv.weight "
        "down_blocks.1.attentions.0.transformer_blocks.0.attn1.to_q.weight "
        "mid_block.attentions.0.transformer_blocks.0.attn2.to_k.weight "
        "up_blocks.1.attentions.2.transformer_blocks.0.attn1.to_v.weight transformer_blocks.5.attn.to_q.weight "
        "transformer_blocks.5.attn.add_k_proj.weight double_blocks.3.img_attn.qkv.weight "
        "single_transformer_blocks.7.attn.to_k.weight model.layers.3.linear_attn.in_proj_qkvz.weight "
        "blocks.5.att.receptance.weight blocks.5.att.key.weight rwkv.blocks.5.attention.value.weight "
        "model.layers.3.self_attn.q_a_proj.weight model.layers.3.self_attn.q_b_proj.weight "
        "model.layers.3.self_attn.indexer.wq_b.weight model.layers.3.self_attn.sinks "
        "transformer.blocks.3.norm_attn_norm.attn.Wqkv.weight model.layers.3.self_attn.W_pack.weight "
        "model.layers.3.attention.wqkv.weight transformer.h.3.attn.attn.weight transformer.h.3.attn.c_q.weight "
        "blocks.3.attn.c_k.weight layers.3.attn.Wqkv.weight encoder.layers.3.self_attn.in_proj_bias "
        "attn_layers.layers.3.1.to_q.weight transformer.layers.3.0.fn.to_qkv.weight "
        "vision_tower.vision_model.encoder.layers.3.self_attn.k_proj.weight visual.blocks.3.attn.qkv.weight "
        "model.decoder.layers.3.encoder_attn.k_proj.weight wav2vec2.encoder.layers.3.attention.k_proj.weight "
        "encoder.encoders.3.self_attn.linear_q.weight image_encoder.blocks.3.attn.qkv.weight "
        "base_model.model.model.layers.5.self_attn.q_proj.lora_A.default.weight "
        "base_model.model.model.layers.5.self_attn.v_proj.base_layer.weight "
        "base_model.model.transformer.h.0.attn.c_attn.lora_B.default.weight "
        "model.layers.5.self_attn.q_proj.lora_magnitude_vector.default "
        "module._orig_mod._fsdp_wrapped_module.model.layers.3._checkpoint_wrapped_module.self_attn.q_proj.weight "
        "_forward_module.model.layers.3.self_attn.k_proj.weight params/transformer/h_3/attn/q_proj/kernel "
        "['params']['layers_3']['attn']['query']['kernel'] "
        "params/Transformer/encoderblock_3/MultiHeadDotProductAttention_0/query/kernel "
        "transformer/layer_3/attn/q_einsum/w transformer/layer_3/attn/kv_einsum/w transformer/h3_attn/query/w "
        ".layers[3].attn.q.weight transformer_layer_3/self_attention/query_dense/kernel:0 "
        "encoder/layers_3/attention/query/kernel decoder.layers.3.self_attention.linear_qkv.weight "
        "decoder.layers.3.self_attention.layernorm_qkv.weight layers.3.self_attention.layernorm_qkv.query_weight "
        "decoder.layers.3.self_attention.linear_q_down_proj.weight decoder.layers.3.cross_attention.linear_kv.weight "
        "model.layers.4.self_attn.kv_proj.weight model.language_model.layers.4.self_attn.q_proj.weight "
        "thinker.model.layers.4.self_attn.v_proj.weight talker.model.layers.2.self_attn.k_proj.weight "
        "text_model.encoder.layers.4.self_attn.q_proj.weight "
        "transformer.text_model.encoder.layers.4.self_attn.v_proj.weight "
        "encoder.block.2.layer.0.SelfAttention.relative_attention_bias.weight layers.4.mixer.Wqkv.weight "
        "transformer.layers.4.attention.query_key_value.weight "
        "model.diffusion_model.input_blocks.4.1.transformer_blocks.0.attn1.to_q.weight "
        "image_backbone.transformer.resblocks.4.attention.wqkv.weight encoders.layer_4.attn.query_proj.weight "
        "blocks.4.cross_attn.q_linear.weight blocks.4.attn1.to_v.weight "
        "params/block_4/CausalSelfAttention_0/c_attn/kernel backbone.layers.4.attn.qkv_proj.weight "
    ),
    "attention_output": (
        "blocks.3.attn.proj.bias layers.0.blocks.1.attn.proj.weight "
        "down_blocks.1.attentions.0.transformer_blocks.0.attn1.to_out.0.weight mid_block.attentions.0.to_out.0.weight "
        "transformer_blocks.5.attn.to_add_out.weight transformer_blocks.5.attn.to_out.0.weight "
        "double_blocks.3.txt_attn.proj.weight model.layers.3.linear_attn.out_proj.weight blocks.5.att.output.weight "
        "rwkv.blocks.5.attention.output.weight transformer.blocks.3.norm_attn_norm.attn.out_proj.weight "
        "layers.3.attn.Wo.weight transformer.h.3.attn.proj.weight attn_layers.layers.3.1.to_out.weight "
        "decoder.layers.3.multihead_attn.out_proj.weight transformer.layers.3.0.fn.to_out.0.weight "
        "vision_model.encoder.layers.3.self_attn.out_proj.weight encoder.encoders.3.self_attn.linear_out.weight "
        "wav2vec2.encoder.layers.3.attention.out_proj.weight "
        "base_model.model.model.layers.5.self_attn.o_proj.lora_B.default.weight "
        "unet.down_blocks.1.attentions.0.transformer_blocks.0.attn1.to_out.0.lora_A.default.weight "
        "params/Transformer/encoderblock_3/MultiHeadDotProductAttention_0/out/kernel "
        "transformer/layer_3/attn/attn_vec_einsum/w params.decoder.layers.3.self_attention.out.kernel "
        "decoder.layers.3.self_attention.linear_proj.weight layers.3.self_attention.proj.weight "
        "language_model.transformer.layers.0.attention.dense.weight blocks.4.cross_attn.proj.weight "
        "model.diffusion_model.output_blocks.4.1.transformer_blocks.0.attn2.to_out.0.weight "
        "deberta.encoder.layer.4.attention.output.dense.weight distilbert.transformer.layer.4.attention.out_lin.weight "
        "roformer.encoder.layer.4.attention.output.dense.weight params/block_4/CausalSelfAttention_0/c_proj/kernel "
        "language_model.model.layers.4.self_attn.o_proj.lora_A.weight transformer.blocks.4.attn.Wo.weight "
        "layers.4.self_attn.wo.weight "
    ),
    "mlp": (
        "blocks.3.mlp.fc2.weight stages.0.blocks.1.mlp.fc1.weight layers.0.blocks.1.mlp.fc1.weight "
        "up_blocks.1.attentions.2.transformer_blocks.0.ff.net.0.proj.weight "
        "up_blocks.1.attentions.2.transformer_blocks.0.ff.net.2.weight blocks.4.mlp.fc1.weight "
        "transformer_blocks.5.ff_context.net.2.weight double_blocks.3.img_mlp.0.weight "
        "single_transformer_blocks.7.proj_mlp.weight model.layers.3.feed_forward.experts.0.gate_proj.weight "
        "blocks.5.ffn.key.weight blocks.5.ffn.receptance.weight rwkv.blocks.5.feed_forward.value.weight "
        "model.layers.3.mlp.experts.7.gate_proj.weight model.layers.3.mlp.gate.e_score_correction_bias "
        "model.layers.3.mlp.shared_expert_gate.weight model.layers.3.mlp.router.weight "
        "model.layers.3.mlp.experts.gate_up_proj model.layers.3.block_sparse_moe.experts.0.w1.weight "
        "transformer.blocks.3.ffn.router.layer.weight transformer.blocks.3.ffn.experts.mlp.w1 "
        "decoder.layers.3.mlp.experts.local_experts.5.linear_fc2.weight decoder.layers.3.mlp.experts.weight1 "
        "model.layers.0.feed_forward.shared_expert.w1.weight transformer.decoder_layer.3.moe.0.linear.weight "
        "layers.3.mlp.Wi.weight layers.3.mlp.Wo.weight transformer.h.3.mlp.fc_1.weight transformer.h.3.mlp.proj.weight "
        "attn_layers.layers.4.1.ff.0.0.weight model.layers.3.mlp.gate_up_proj.weight "
        "vision_model.encoder.layers.3.mlp.fc1.weight wav2vec2.encoder.layers.3.feed_forward.intermediate_dense.weight "
        "encoder.encoders.3.feed_forward_macaron.w_1.weight "
        "base_model.model.model.layers.5.mlp.down_proj.lora_A.default.weight "
        "params/Transformer/encoderblock_3/MlpBlock_0/Dense_0/kernel transformer/layer_3/mlp/gating_einsum "
        "encoder/layer_3/mlp/linear_1/w ['params']['layers_3']['mlp']['Dense_0']['kernel'] "
        "params/params/decoder/layers/mlp/wi_0/kernel layers.3.layernorm_mlp.fc1_weight "
        "layers.3.layernorm_mlp.fc2_weight decoder.layers.3.mlp.shared_experts.linear_fc1.weight "
        "decoder.layers.3.mlp.linear_fc1.weight distilbert.transformer.layer.4.ffn.lin1.weight "
        "albert.encoder.albert_layer_groups.0.albert_layers.0.ffn_output.weight model.layers.4.mlp.experts.down_proj "
        "transformer.h.4.mlp.w1.weight params/block_4/MLP_0/c_fc/kernel encoder.layers.4.mlp.0.weight "
        "model.layers.4.moe.experts.5.w3.weight layers.4.feed_forward.gate.weight "
        "model.layers.4.feed_forward.router.weight blocks.4.mlp.w12.weight blocks.4.mlp.w3.weight "
        "single_blocks.4.mlp.fc1.weight model.layers.4.block_sparse_moe.input_linear.weight "
        "model.layers.4.mlp.shared_mlp.up_proj.weight "
    ),
    "embedding": (
        "reg_token time_embedding.linear_1.weight add_embedding.linear_2.weight class_embedding.weight "
        "x_embedder.proj.weight t_embedder.mlp.0.weight y_embedder.embedding_table.weight context_embedder.weight "
        "time_text_embed.timestep_embedder.linear_1.weight pos_embed.proj.weight backbone.embeddings.weight emb.weight "
        "rwkv.embeddings.weight value_embeds.0.weight embeddings.tok_embeddings.weight to_patch_embedding.1.weight "
        "vision_model.embeddings.patch_embedding.weight vision_model.embeddings.class_embedding "
        "visual.patch_embed.proj.weight model.encoder.embed_positions.weight "
        "wav2vec2.encoder.pos_conv_embed.conv.weight base_model.model.model.embed_tokens.lora_embedding_A.default "
        "token_embedder/embedding transformer/embedder/input_embedding params/img/embedding/kernel "
        "encoder/relpos_bias/rel_embedding params/Transformer/posembed_input/pos_embedding "
        "['params']['wte']['embedding'] distilbert.embeddings.word_embeddings.weight "
        "model.vision_tower.embeddings.patch_embeddings.projection.weight time_embed.0.weight pos_embedding "
        "encoder.embed_tokens.weight x_embedder.weight wpe.weight label_emb.weight img_in_embedder.weight "
        "clip.text_model.embeddings.token_embedding.weight audio_tower.embed_positions.weight mask_token "
    ),
    "lm_head": (
        "head.fc.weight fc.weight head_dist.weight final_layer.linear.weight proj_out.weight mlp_head.1.weight "
        "transformer.output_layer.weight base_model.model.lm_head.modules_to_save.default.weight "
        "base_model.model.score.modules_to_save.default.weight base_model.model.lm_head.lora_A.default.weight "
        "_fsdp_wrapped_module.lm_head.weight params/head/kernel params/lm_head/kernel head.proj.weight "
        "vocab_head.weight heads.head.weight qa_outputs.weight decoder.lm_head.weight cls_head.fc.weight "
        "to_logits.weight classifier.out_proj.weight "
    ),
    "norm": (
        "blocks.3.norm2.weight fc_norm.weight norm_pre.weight layer1.0.bn1.weight bn1.weight "
        "stages.1.downsample.norm.weight blocks.2.0.bn2.weight stages.0.blocks.1.norm.weight "
        "down_blocks.0.resnets.0.norm1.weight conv_norm_out.weight mid_block.attentions.0.norm.weight "
        "mid_block.attentions.0.group_norm.weight down_blocks.1.attentions.0.transformer_blocks.0.norm3.weight "
        "transformer_blocks.5.attn.norm_q.weight double_blocks.3.img_attn.norm.query_norm.scale "
        "backbone.layers.9.mixer.norm.weight model.layers.3.mamba.dt_layernorm.weight blocks.5.ln1.weight ln_out.weight "
        "blocks.0.pre_ln.weight blocks.5.att.ln_x.weight model.layers.3.self_attn.q_a_layernorm.weight "
        "transformer.blocks.3.norm_attn_norm.norm_1.weight model.layers.61.enorm.weight model.layers.61.hnorm.weight "
        "model.layers.61.shared_head.norm.weight model.layers.3.pre_feedforward_layernorm.weight "
        "transformer.h.3.norm_1.weight decoder.norm.weight vision_model.post_layernorm.weight "
        "vision_model.encoder.layers.3.layer_norm1.weight encoder.encoders.3.norm_ff.weight "
        "wav2vec2.feature_extractor.conv_layers.0.layer_norm.weight encoder.after_norm.weight "
        "params/Transformer/encoderblock_3/LayerNorm_0/scale params/Transformer/encoder_norm/scale "
        "transformer/layer_3/pre_attention_norm/scale params/ln_f/scale "
        "decoder.layers.3.self_attention.linear_qkv.layer_norm_weight decoder.layers.3.mlp.linear_fc1.layer_norm_weight "
        "layers.3.layernorm_mlp.layer_norm_weight decoder.layers.3.self_attention.layernorm_qkv.layer_norm_weight "
        "model.layers.4.ln1.weight layers.4.norm_attn.weight model.vision_tower.encoder.layer.4.norm_before.weight "
        "layer3.5.bn3.weight transformer.norm_out.norm.weight params/block_4/RMSNorm_0/scale "
        "encoder.layers.4.self_attn_layer_norm.weight backbone.layers.4.norm2.bias "
        "unet.up_blocks.1.resnets.2.norm2.bias final_norm.weight model.final_layernorm.weight "
        "blocks.4.attn.k_norm.weight distilbert.transformer.layer.4.sa_layer_norm.weight "
    ),
    "block": (
        "layer1.0.conv1.weight layer2.1.conv2.weight stages.0.blocks.1.conv_dw.weight blocks.2.0.conv_pw.weight "
        "blocks.2.0.se.conv_reduce.weight layers.0.downsample.reduction.weight blocks.3.ls1.gamma "
        "down_blocks.0.resnets.1.conv2.weight up_blocks.3.resnets.2.time_emb_proj.weight "
        "down_blocks.0.downsamplers.0.conv.weight up_blocks.1.resnets.0.conv_shortcut.weight "
        "down_blocks.1.attentions.0.proj_in.weight blocks.4.adaLN_modulation.1.weight "
        "double_blocks.3.img_mod.lin.weight backbone.layers.9.mixer.conv1d.weight backbone.layers.9.mixer.x_proj.weight "
        "model.layers.3.mamba.in_proj.weight model.layers.3.mamba.out_proj.weight model.layers.3.mamba.A_log "
        "backbone.layers.9.mixer.dt_bias backbone.layers.9.mixer.D model.layers.61.eh_proj.weight "
        "wav2vec2.feature_extractor.conv_layers.0.conv.weight encoder.encoders.3.conv_module.pointwise_conv1.weight "
        "layer3.5.conv2.weight features.4.conv.0.weight input_blocks.4.0.in_layers.2.weight "
        "input_blocks.4.0.emb_layers.1.weight model.layers.4.ssm.x_proj.weight layers.4.mamba2.out_proj.weight "
        "down_blocks.2.resnets.1.conv1.weight blocks.4.gamma_1 "
    ),
}  # fmt: skip
"""Parameters of timm, diffusers (UNet, DiT, SD3, Flux), Mamba and Jamba, RWKV, DeepSeek, Qwen, DBRX and Llama 4 mixtures, vision
and audio towers, PEFT adapters, wrapped modules, flattened JAX and Keras paths, Megatron with Transformer Engine."""


@pytest.mark.parametrize(
    ("expected", "layer"), [(k, name) for k, names in (*NAMINGS.items(), *PUBLIC.items()) for name in names.split()]
)
def test_every_naming_tells_the_kind(expected: LayerKind, layer: str) -> None:
    assert kind(clean(layer)) == expected


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("module._orig_mod.model.layers.0.mlp", "model.layers.0.mlp"), ("_forward_module.module.lm_head", "lm_head"),
        ("['params']['h_0']['attn']['kernel']", "params.h_0.attn.kernel"), (".layers[3].attn.q", "layers.3.attn.q"),
        ("submodule.layers.0", "submodule.layers.0"), ("layers.1._fsdp_wrapped_module.mlp", "layers.1.mlp"),
    ],
)  # fmt: skip
def test_wrappers_and_brackets_leave_the_path(name: str, path: str) -> None:
    assert clean(name) == path


def test_the_way_out_of_a_mixer_is_told_by_its_neighbours() -> None:
    state_space = [f"backbone.layers.0.mixer.{part}" for part in ("in_proj", "A_log", "out_proj")]
    attention = [f"transformer.layers.0.mixer.{part}" for part in ("Wqkv", "out_proj")]

    kinds = [c.kind for c in catalogue({f"grad_norm:{n}": ("grad_norm", n) for n in (*state_space, *attention)})]

    assert kinds == ["block", "block", "block", "attention_qkv", "attention_output"]


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


FORWARD = (
    "wte blocks.0.fc blocks.2.fc blocks.7.fc ln_f lm_head",
    "down.0.block.0.conv1 down.0.block.1.conv1 down.0.downsample.conv down.1.block.0.conv1 mid.block_1.conv1 "
    "up.1.block.0.conv1 up.1.upsample.conv up.0.block.0.conv1",
    "encoder.down.0.block.0.conv1 encoder.mid.block_1.conv1 decoder.mid.block_1.conv1 decoder.up.3.block.0.conv1 "
    "decoder.up.0.block.0.conv1",
    "down_blocks.0.resnets.0.conv1 down_blocks.0.resnets.1.conv1 down_blocks.0.downsamplers.0.conv "
    "down_blocks.1.attentions.0.proj_in mid_block.resnets.0.conv1 up_blocks.0.resnets.0.conv1 up_blocks.1.resnets.0.conv1",
    "input_blocks.1.0.in_layers.0 input_blocks.3.0.op middle_block.0.in_layers.0 output_blocks.2.0.in_layers.0",
    "shared encoder.block.0.layer.0.SelfAttention.q encoder.block.1.layer.1.DenseReluDense.wi "
    "decoder.block.0.layer.0.SelfAttention.q decoder.block.1.layer.2.DenseReluDense.wo lm_head",
    "patch_embed.proj layers.0.blocks.0.mlp.fc1 layers.0.blocks.1.mlp.fc1 layers.1.blocks.0.mlp.fc1 head",
    "layer1.0.conv1 layer1.1.conv1 layer2.0.conv1 fc", "stages.0.0.dwconv stages.0.1.dwconv stages.1.0.dwconv head",
    "backbone.layer1.0.conv1 transformer.encoder.layers.0.linear1 transformer.decoder.layers.0.linear1",
    "vision_tower.vision_model.encoder.layers.3.mlp.fc1 language_model.model.layers.0.mlp.up_proj",
)  # fmt: skip
"""Layers in the order of the forward pass: a transformer of which some blocks are logged, U-Net and autoencoder of latent
diffusion (its Decoder runs `up` from the highest number down) and of diffusers, T5, Swin, ResNet, ConvNeXt, DETR, LLaVA."""


@pytest.mark.parametrize("names", FORWARD)
def test_depths_follow_the_forward_pass(names: str) -> None:
    layers = names.split()
    columns = catalogue({f"grad_norm:{n}": ("grad_norm", n) for n in reversed(layers)})
    depths = {column.layer: column.depth for column in columns}
    assert None not in depths.values()
    assert sorted(layers, key=lambda n: depths[n] or 0) == layers
    assert len(set(depths.values())) == len(layers)


def test_one_row_of_blocks_keeps_its_numbers() -> None:
    columns = catalogue({f"grad_norm:{n}": ("grad_norm", n) for n in FORWARD[0].split()})
    assert [column.depth for column in columns] == [-1, 0, 2, 7, 8, 9]


@pytest.mark.parametrize(
    ("layer", "path"),
    [
        ("blocks.2.fc", "blocks.2"), ("model.layers.12.mlp.w1", "model.layers.12"), ("h.1.attn", "h.1"), ("layer11", "layer11"),
        ("other", ""), ("wte", ""), ("down.0.block.1.conv1", "down.0.block.1"), ("layer3.0.conv2", "layer3.0"),
        ("encoder.block.0.layer.1.DenseReluDense.wi", "encoder.block.0"), ("model.layers.3.mlp.experts.7.w1", "model.layers.3"),
        ("model.layers.3.mlp.0", "model.layers.3"),
    ],
)  # fmt: skip
def test_the_block_of_a_layer(layer: str, path: str) -> None:
    (column,) = catalogue({f"grad_norm:{layer}": ("grad_norm", layer)})
    assert column.block == path


@pytest.mark.parametrize(
    ("name", "path"),
    [("layers/blocks.0.out", "blocks.0.out"), ("layers/wte", "wte"), ("per_layer/h.3", "h.3"), ("layers/0/mlp", "layers/0/mlp"),
     ("layers/0", "layers/0"), ("layers/mlp/wi_0", "layers/mlp/wi_0"), ("layers.0.mlp", "layers.0.mlp")],
)  # fmt: skip
def test_the_logs_own_table_is_no_part_of_a_path(name: str, path: str) -> None:
    assert clean(name) == path


def test_layers_that_only_their_names_count_are_a_stack() -> None:
    names = [*(f"conv{i}.weight" for i in range(1, 6)), "fc.weight"]
    entries = catalogue({f"grad_norm:{name}": ("grad_norm", name) for name in names})
    assert [(e.depth, e.block) for e in entries] == [(i, f"conv{i}") for i in range(1, 6)] + [(7, "")]
    assert entries[-1].kind == "lm_head"
    few = catalogue({f"grad_norm:{name}": ("grad_norm", name) for name in ("fc1", "fc2", "out")})
    assert all(e.block == "" for e in few)


@pytest.mark.parametrize(
    "space", ["optimizer/", "optim/", "opt/", "train/", "training/", "learning/", "metrics/", "diagnostics/"]
)
def test_a_name_space_before_the_quantity_is_no_part_of_the_layer(space: str) -> None:
    assert parse(f"{space}grad_norm/blocks.0.fc") == ("grad_norm", "blocks.0.fc")
    assert parse(f"{space}param_norm/head") == ("param_norm", "head")


@pytest.mark.parametrize(
    "name",
    [
        "grad_l2/blocks.{}.fc",
        "grad_2.{}_norm/layers.{}",
        "l2_norm/grad/h.{}.fc{}",
        "gnorm_layer{}",
        "time/{}",
        "grad/{}",
    ],
)
def test_other_numbers_are_the_same_form(name: str) -> None:
    for number in ("0", "2", "17", "123456"):
        filled = name.replace("{}", number)
        first = next(((p, q) for p, q in _patterns() if p.match(filled)), None)
        found = parse(filled)
        assert (found is None) == (first is None)
        if found is not None and first is not None and (matched := first[0].match(filled)):
            assert found == (first[1], clean(matched["layer"]))
