"""Per-layer columns of every naming in use: which quantity, which layer, how deep, of which kind."""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import Final

from gdiag.ingesters.aliases import LONGEST_NAME
from gdiag.schema import LayerColumn, LayerKind, Quantity

_SPACE = r"^(?:(?:optim|train|training|metrics|stats|debug|monitor|watch|model|norms|layers?_stats)/)*"
_TOTALS: Final = frozenset(
    [
        "total",
        "global",
        "all",
        "overall",
        "mean",
        "avg",
        "average",
        "max",
        "min",
        "median",
        "std",
        "ema",
        "step",
        "epoch",
        "clipped",
        "before_clip",
        "after_clip",
        "raw",
        "pre_clip",
        "post_clip",
        "unclipped",
        "square",
        "squared",
        "sq",
        "vs",
        "samples",
        "l2",
        "coef",
        "ratio",
        "threshold",
        "count",
        "first",
        "last",
        "norm",
    ]
)
_GRAD = r"(?:grad_norms?|gradient_norms?|gradnorms?|gnorms?|grad_l2_norms?|grad_l2|grad_norm_l2|grad_rms|grads?_norms?)"
_PARAM = r"(?:param_norms?|params_norm|weight_norms?|parameter_norms?|w_norm|param_rms)"
_UPDATE = r"(?:update_norms?|updates?_l2|delta_norm|update_rms)"
_LOGIT = (
    r"(?:attn_max_logits?|max_attn_logits?|attn_logits?_max|max_attention_logits?|attention_logits?_max|"
    r"attention_max_logits?|attn_logits?|attention_logits?|qk_max|max_qk)"
)
_ACT = r"(?:activation_norms?|act_norms?|actv_norms?|activation_rms|act_rms|output_norms?|hidden_norms?)"
_SECOND = r"(?:second_moments?|exp_avg_sq|exp_avg_sq_norm|adam_v|v_norm|second_moment_norms?)"
_MAX = r"(?:grad_max|max_grad|grad_absmax|grad_abs_max|grad_inf_norm|gmax)"
_FORMS: Final[tuple[tuple[str, Quantity], ...]] = (
    (_GRAD, "grad_norm"), (_PARAM, "param_norm"), (_UPDATE, "update_norm"), (_LOGIT, "attention_logit"),
    (_ACT, "activation_norm"), (_SECOND, "second_moment"), (_MAX, "grad_max"),
)  # fmt: skip
_PATH = (
    r"(?!.*[./](?:mean|std|var|min|sum|hist|histogram|ratio)$)(?:\S*[./])?"
    r"(?:\d+|(?:fc|lin|linear|conv|dense|layer|block|stage)_?\d+|weight|bias|wte|wpe|\w*emb\w*|lm_head|ln_f|final_\w*norm|output_layer)(?:[./]\S+)?"
)
"""What is a layer's path even where nothing says that its norm is meant."""
_SPECIAL: Final[tuple[tuple[str, Quantity], ...]] = (
    (r"exp_avg_sq/(?P<layer>.+)\.norm", "second_moment"),
    (r"grad/norm/(?P<layer>.+)", "grad_norm"),
    (r"params?/norm/(?P<layer>.+)", "param_norm"),
    (r"updates?/norm/(?P<layer>.+)", "update_norm"),
    (r"opt_state/norm/(?P<layer>(?:.*[./])?nu[./].+)", "second_moment"),
    (r"grad/(?P<layer>.+)\.norm", "grad_norm"),
    (r"grad/(?P<layer>.+)\.max", "grad_max"),
    (r"param/(?P<layer>.+)\.norm", "param_norm"),
    (r"(?:step|update)/(?P<layer>.+)\.norm", "update_norm"),
    (r"l2_norm/grad/(?P<layer>.+)", "grad_norm"),
    (r"l2_norm/param/(?P<layer>.+)", "param_norm"),
    (r"l2_norm/update/(?P<layer>.+)", "update_norm"),
    (r"l2_norm/second_moment(?:_sqrt)?/(?P<layer>.+)", "second_moment"),
    (r"optimizer_state_norms/(?P<layer>.+)_exp_avg_sq", "second_moment"),
    (r"grad_inf_norm/(?P<layer>.+)", "grad_max"),
    (r"grad_[\d.]+_norm[/_](?P<layer>.+)", "grad_norm"),
    (r"gnorm_(?P<layer>layer_?\d+|_fsdp\S+)", "grad_norm"),
    (r"gmax_(?P<layer>layer_?\d+)", "grad_max"),
    (r"gradients?/(?P<layer>.+)", "grad_norm"),
    (rf"grads?/(?P<layer>{_PATH})", "grad_norm"),
    (r"parameters/(?P<layer>.+)", "param_norm"),
)  # fmt: skip
_HINT: Final = re.compile(r"[/.:\d]|_fsdp", re.IGNORECASE)
"""What every name of a layer's column holds."""


@cache
def _patterns() -> tuple[tuple[re.Pattern[str], Quantity], ...]:
    """Every form of name, compiled when the first name needs it: that takes a third of the time of importing polars."""
    forms = (
        *_SPECIAL,
        *((rf"{words}[/.:](?P<layer>.+)", quantity) for words, quantity in _FORMS),
        *((rf"{words}[_ ](?P<layer>(?:model|module|transformer|layers?|blocks?|h|encoder|decoder)[._]?\S*\d\S*)", quantity) for words, quantity in _FORMS),
        *((rf"(?P<layer>.*\S)[/.:]{words.replace('_', '[_/. ]')}", quantity) for words, quantity in _FORMS),
        *((rf"(?P<layer>\S*(?:layers?|blocks?|h)[._]?\d+\S*?)_{words}", quantity) for words, quantity in _FORMS),
    )  # fmt: skip
    return tuple((re.compile(_SPACE + form + "$", re.IGNORECASE), quantity) for form, quantity in forms)


_WRAPPERS = re.compile(
    r"(?:^|(?<=[./]))(?:module|_fsdp_wrapped_module|_orig_mod|_checkpoint_wrapped_module|_fpw_module)[./]"
)
_BLOCK = re.compile(
    r"(?:^|[._/])(?:layers?|blocks?|h|hidden_layers?|transformer_layers?|resblocks|stages?|block_list|encoder_layers?|"
    r"decoder_layers?|seq|sequential)[._/]?(\d+)(?=$|[._/])"
)
_ANY_NUMBER = re.compile(r"(?:^|[._/])(\d+)(?=$|[._/])")
_KIND_WORDS: Final[tuple[tuple[LayerKind, str], ...]] = (
        ("norm", r"(?:\w*_)?(?:ln|norm|layer_?norm|rms_?norm|rmsnorm|layernorm)(?:_?[\w]*)?|ln\d|norm\d|\w+_ln|\w*layernorm\w*"),
        ("lm_head", r"lm_head|head|output_layer|embed_out|unembed|unembedding|final_linear|logits\w*|ff_out_head|score|classifier|output_projection|predictions[./]decoder"),
        ("embedding", r"wte|wpe|shared|cls_token|embed\w*|tok_emb\w*|pos_emb\w*|token_emb\w*|word_embeddings|position_embeddings|\w*embedding\w*|emb"),
        ("attention_qkv", r"qkv|wqkv|c_attn|in_proj\w*|query_key_value|q_proj|k_proj|v_proj|wq|wk|wv|att_proj|qkv_proj|"
                          r"query|key|value|linear_qkv|to_qkv|to_q|to_k|to_v|q|k|v|q_a_proj|q_b_proj|kv_a_proj\w*|kv_b_proj"),
        ("attention_output", r"o_proj|out_proj|wo|w_out|attn_out|linear_proj|to_out|o|proj"),
        ("mlp", r"fc|fc\d|c_fc|mlp|ffn|feed_forward|w1|w2|w3|gate_proj|up_proj|down_proj|dense_h_to_4h|dense_4h_to_h|"
                r"linear_fc\d|ff_proj|ff_out|experts?|gate|out|ff|wi|wi_\d|c_proj|lin\d|linear\d"),
)  # fmt: skip
_MLP = re.compile(
    r"(?:^|[./])(?:mlp|ffn|feed_forward|feedforward|experts?|block_sparse_moe|moe|moeblock_\d+|densereludense|intermediate)(?=[./])"
)
_BERT_MLP = re.compile(r"(?:^|[./])layer[./]\d+[./]output[./]dense$")
_STATE_SPACE = re.compile(r"(?:^|[./])mixer[./](?:in_proj|x_proj|dt_proj|dt_bias|conv1d|a_log|d)$")
_PATCHES = re.compile(r"(?:^|[./])patch_embed(?:ding)?s?[./]")
_ATTENTION = re.compile(r"(?:^|[._/])(?:attn|attention|self_attn|self_attention|att|mha|mixer)(?=$|[._/])")


@cache
def _kinds() -> tuple[tuple[LayerKind, re.Pattern[str]], ...]:
    return tuple((kind, re.compile(rf"(?:^|[./])(?:{words})(?=$|[./])")) for kind, words in _KIND_WORDS)


@lru_cache(maxsize=65536)
def parse(name: str) -> tuple[Quantity, str] | None:
    """Quantity and clean layer path of a per-layer column, None when it is none."""
    if len(name) > LONGEST_NAME or not _HINT.search(name):
        return None
    for pattern, quantity in _patterns():
        matched = pattern.match(name)
        if matched is not None:
            layer = clean(matched["layer"])
            if not layer or layer.lower() in _TOTALS or layer.lower().endswith("_total"):
                return None
            return quantity, layer
    return None


def clean(layer: str) -> str:
    """The path without wrapper parts: module.model._orig_mod.layers.0 → model.layers.0."""
    return _WRAPPERS.sub("", layer.strip().strip("/"))


def catalogue(found: dict[str, tuple[Quantity, str]]) -> tuple[LayerColumn, ...]:
    """Catalogue entries of `<quantity>:<layer>` columns, with depths that put final norm and head above every block."""
    numbers = {layer: block(layer) for _, layer in found.values()}
    top = max((n for n in numbers.values() if n is not None), default=None)
    return tuple(
        LayerColumn(column, layer, quantity, _depth(layer, numbers[layer], top), kind(layer))
        for column, (quantity, layer) in found.items()
    )


def block(layer: str) -> int | None:
    """Block number that a path names."""
    lower = layer.lower()
    matched = _BLOCK.search(lower) or _ANY_NUMBER.search(lower)
    return int(matched.group(1)) if matched else None


def kind(layer: str) -> LayerKind:
    """What a layer is, by its name in the namings of GPT-2, NeoX, LLaMA, BERT, T5, ViT, OLMo, Megatron, fairseq, MaxText and mixtures."""
    path = re.sub(r"[._/](?:weight|bias|kernel|scale|w|b)$", "", layer.lower())
    numbered = block(path) is not None
    if path.endswith("att_proj"):
        return "attention_qkv"
    if _STATE_SPACE.search(path):
        return "block"
    if _BERT_MLP.search(path):
        return "mlp"
    if _PATCHES.search(path) and not numbered:
        return "embedding"
    if path.endswith("ff_out") and not numbered:
        return "lm_head"
    if _ATTENTION.search(path) and re.search(
        r"(?:^|[./]|attn_|attention_)(?:c_proj|proj|dense|out|output|w_out)$", path
    ):
        return "attention_output"
    if _MLP.search(path) and not re.search(r"norm|(?:^|[./])ln", path):
        return "mlp"
    for found, pattern in _kinds():
        if pattern.search(path):
            if numbered and found == "lm_head":
                continue
            return found
    if re.search(r"(?:^|[._/])output$", path) and not numbered:
        return "lm_head"
    if _ATTENTION.search(path):
        return "attention_qkv"
    return "block" if numbered else "other"


def _depth(layer: str, number: int | None, top: int | None) -> int | None:
    if number is not None:
        return number
    what = kind(layer)
    if what == "embedding":
        return -1
    if what == "norm":
        return None if top is None else top + 1
    if what == "lm_head":
        return None if top is None else top + 2
    return None
