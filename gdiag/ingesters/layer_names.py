"""Per-layer columns of every naming in use: which quantity of which layer."""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import Final

from gdiag.ingesters.aliases import LONGEST_NAME
from gdiag.schema import Quantity

_SPACE = r"^(?:(?:optim|optimizer|opt|train|training|learning|diagnostics|metrics|stats|debug|monitor|watch|model|norms|layers?_stats)/)*"
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
    (r"grad(?:ient)?_[\d.]+_norm[/_](?P<layer>.+)", "grad_norm"),
    (r"(?:param(?:eter)?|weight)_[\d.]+_norm[/_](?P<layer>.+)", "param_norm"),
    (r"gnorm_(?P<layer>layer_?\d+|_fsdp\S+)", "grad_norm"),
    (r"gmax_(?P<layer>layer_?\d+)", "grad_max"),
    (r"gradients?/(?P<layer>.+)", "grad_norm"),
    (rf"grads?/(?P<layer>{_PATH})", "grad_norm"),
    (r"parameters/(?P<layer>.+)", "param_norm"),
)  # fmt: skip
_HINT: Final = re.compile(r"[/.:\d]|_fsdp", re.IGNORECASE)
"""What every name of a layer's column holds."""

_COUNT: Final = re.compile(r"(?<![lL])\d+")
"""A number that counts; behind an l it may be the kind of a norm, as l2."""


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
    r"(?:^|(?<=[./]))(?:_?module|_fsdp_wrapped_module|_orig_mod|_checkpoint_wrapped_module|_fpw_module|_forward_module)[./]"
)
_CONTAINER = re.compile(r"^(?:layers?|modules?|(?:per|by)_layer)/(?=[^/\d][^/]*$)", re.IGNORECASE)
"""The name of a log's own table of layers: layers/blocks.0.fc, but not layers/0/fc, which is a path."""
_SUBSCRIPT = re.compile(r"\[['\"]?([^\[\]'\"]+)['\"]?\]")
"""A step of a path in brackets, as jax.tree_util.keystr and lists of modules print it."""


@lru_cache(maxsize=65536)
def parse(name: str, *, contained: bool = False) -> tuple[Quantity, str] | None:
    """Quantity and clean layer path of a per-layer column, None when it is none.

    Args:
        name: the column's.
        contained: keep the name of a log's own table of layers, which tells layers/head from head where a file has both.
    """
    if len(name) > LONGEST_NAME or not _HINT.search(name):
        return None
    form = _form(_COUNT.sub("0", name))
    if form is None or (matched := form[0].match(name)) is None:
        return None
    layer = clean(matched["layer"], contained=contained)
    # A name inside a wrapper is a module's, be it called norm.
    own = matched["layer"].strip("/ ").lower()
    if not layer or own in _TOTALS or own.endswith("_total"):
        return None
    return form[1], layer


@lru_cache(maxsize=4096)
def _form(name: str) -> tuple[re.Pattern[str], Quantity] | None:
    """The first form that a name fits: it is that of all whose numbers alone are others, of which a model has thousands."""
    return next(((pattern, quantity) for pattern, quantity in _patterns() if pattern.match(name)), None)


def clean(layer: str, *, contained: bool = False) -> str:
    """The path without wrapper parts: module.model._orig_mod.layers.0 → model.layers.0, ['params']['h_0'] → params.h_0,
    layers/blocks.0.fc → blocks.0.fc unless `contained`."""
    path = layer.strip().strip("/")
    if "[" in path:
        path = _SUBSCRIPT.sub(r".\1", path).strip(".")
    return _WRAPPERS.sub("", path if contained else _CONTAINER.sub("", path, count=1))
