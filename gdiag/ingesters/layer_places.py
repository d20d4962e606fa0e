"""Where a layer stands in its model and what it is, by its path: depth, block and kind."""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import Final

from gdiag.schema import LayerColumn, LayerKind, Quantity

_BLOCK = re.compile(
    r"(?:^|[._/])(?:layers?|blocks?|h|hidden_layers?|transformer_layers?|resblocks|stages?|block_list|encoder_layers?|"
    r"decoder_layers?|seq|sequential)[._/]?(\d+)(?=$|[._/])"
)
_STAGED = re.compile(
    r"(?:^|[./])(?P<stage>downs?|ups?|(?:down|up)_blocks|layers?|stages?)[._/]?(?P<outer>\d+)"
    r"(?:[./](?:(?P<unit>[a-z]+)[._/])?(?P<inner>\d+))?(?=$|[._/])"
)
_UNITS: Final[dict[str, tuple[str | None, ...]]] = {
    "layer": (None,), "layers": ("blocks",), "stage": (None, "block", "blocks"), "stages": (None, "block", "blocks", "layers"),
    "down": ("block", "attn"), "up": ("block", "attn"), "downs": (None,), "ups": (None,),
    "down_blocks": ("resnets", "attentions"), "up_blocks": ("resnets", "attentions"),
}  # fmt: skip
"""Words of numbered stages and of the blocks numbered anew in each, None for a bare number: layer3.0 (ResNet),
layers.2.blocks.5 (Swin), stages.1.2 (ConvNeXt), down.0.block.1 (latent diffusion), up_blocks.1.resnets.0 (diffusers)."""
_SIDES: Final = ((-1, r"backbone|stem|visual|vision_\w+"), (0, r"encoder"), (2, r"decoder"))
_ARMS: Final = ((0, r"downs?|(?:down|input)_blocks?"), (2, r"ups?|(?:up|output)_blocks?"))
"""Words before a block's number that place it ahead of the blocks without such a word (1), or behind."""
_LAST: Final = 1 << 30
"""Place of what resamples at the end of a stage of an arm: down.0.downsample."""
_COUNTED = re.compile(r"((?:.*[./])?[a-z]+)_?(\d{1,4})")
"""conv1, features.fc_12: the word and the number."""
_LEAST_STACK: Final = 3
_ANY_NUMBER = re.compile(r"(?:^|[._/])(\d+)(?=$|[._/])")
_NUMBER = re.compile(r"(?<=[./])\d+(?=[./]|$)")
"""A part of a path that counts: which number it is tells nothing of what the layer is."""
_NORM = r"(?:\w*_)?(?:ln|bn|gn|[a-z]?norm|(?:layer|rms|batch|group)_?norm)(?:_?\w*)?|\w*layernorm\w*"
_HEAD = (
    r"(?:\w*_)?heads?(?:_\w+)?|output_layer|embed_out|unembed|unembedding|final_linear|final_layer|(?:to_)?logits\w*|qa_outputs|score|"
    r"classifier|output_projection|proj_out"
)
_EMBEDDING = (
    r"wte|wpe|shared|\w+_token|(?:\w+_)?emb|(?:tok|token|pos|patch)_emb(?!\w*proj)\w*|"
    r"\w*embed(?:s|der|ding|dings)?|\w*embed(?:ding)?s?_(?!proj)\w+|\w*embedding\w*"
)
_ATTENTION = r"(?:\w*_)?(?:attn|\w*attention|att|mha|mixer)(?:_?\d+)?(?:_[a-z_]+)?"
_MLP = r"(?:\w*_)?(?:mlp|ffn|ff|feed_?forward|experts?|(?:block_sparse_)?moe|moeblock|mlpblock|router|densereludense|intermediate)(?:_\w+)?"
_STATE_SPACE = r"(?:mamba\d?|ssm)|mixer[./](?:in_proj|x_proj|dt_proj|dt|dt_bias|conv1d|a_log|d)$"
_KIND_WORDS: Final[tuple[tuple[LayerKind, str], ...]] = (
        ("attention_qkv", r"qkv|wqkv|c_attn|att_proj|in_proj\w*|query_key_value|w_pack|qkv_proj|query|key|value|linear_qkv|"
                          r"(?:to_|w|c_|linear_)?(?:q|k|v|qkv|kv)(?:_(?:[ab]_)?proj\w*)?"),
        ("attention_output", r"o_proj|out_proj|wo|w_out|attn_out|attn_proj|linear_proj|to_out|o|proj"),
        ("mlp", r"fc|fc_?\d|c_fc|w_?[123]|gate_proj|up_proj|down_proj|dense_h_to_4h|dense_4h_to_h|linear_fc\d|"
                r"gate|out|wi|wi_\d|c_proj|lin\d|linear\d"),
)  # fmt: skip
"""What a part's own name says where no unit around it is named."""
_INWARD: Final = frozenset(["q", "k", "v", "qkv", "kv", "in", "query", "key", "value", "att"])
_OUTWARD: Final = frozenset(["o", "wo", "proj", "out", "output", "dense", "vec"])
"""Words of the parts of an attention that lead into it and back to the stream; the former decide where a name has both."""
_FUSED = re.compile(r"(?<![^./])(?:layernorm_(?=qkv|mlp|linear)|norm_attn_norm[./](?=attn))")
"""A norm fused with the layer behind it (Transformer Engine, DBRX): the name goes on with that layer's."""
_LEAF = re.compile(
    r"(?::\d+|[._/](?:weight\d*|bias|kernel|scale|gamma|beta|w|b|base_layer|modules_to_save|default|lora_\w+))+$"
)
"""What ends the name of a parameter and says nothing about its layer: the parameter itself, an adapter's (PEFT) parts."""
_BERT_MLP = re.compile(r"(?:^|[./])layer[./]\d+[./]output[./]dense$")


@cache
def _part(words: str) -> re.Pattern[str]:
    """A part of a path that is one of `words`."""
    return re.compile(rf"(?:^|[./])(?:{words})(?=$|[./])")


def catalogue(found: dict[str, tuple[Quantity, str]]) -> tuple[LayerColumn, ...]:
    """Catalogue entries of `<quantity>:<layer>` columns, with depths that put final norm and head above every block."""
    places = {layer: _place(layer) for _, layer in found.values()}
    if not any(places.values()):
        places = _stack(list(places))
    keys = sorted({place[0] for place in places.values() if place is not None})
    # One row of blocks keeps its numbers, of which a log may hold some alone; several are counted through.
    plain = len({key[:2] for key in keys}) < 2 and all(len(key) == 3 for key in keys)
    depths = {key: key[2] if plain else k for k, key in enumerate(keys)}
    top = max(depths.values(), default=None)
    recurrent = {layer[: m.start()] for layer in places if (m := _part(_STATE_SPACE).search(layer.lower()))}
    columns: list[LayerColumn] = []
    for column, (quantity, layer) in found.items():
        place, what = places[layer], _among(layer, recurrent)
        if place is None:
            columns.append(LayerColumn(column, layer, quantity, _depth(layer, top), what))
        else:
            own = place[1] if what not in ("embedding", "lm_head") else ""
            columns.append(LayerColumn(column, layer, quantity, depths[place[0]], what, own))
    return tuple(columns)


def _stack(layers: list[str]) -> dict[str, tuple[tuple[int, ...], str] | None]:
    """Places of layers without blocks whose names count them, conv1, conv2, …: where a word has three numbers or more, each is a block."""
    named = {layer: _COUNTED.fullmatch(_LEAF.sub("", layer.lower())) for layer in layers}
    numbers: dict[str, set[int]] = {}
    for match in named.values():
        if match is not None:
            numbers.setdefault(match[1], set()).add(int(match[2]))
    word = max(numbers, key=lambda w: len(numbers[w]), default="")
    if len(numbers.get(word, ())) < _LEAST_STACK:
        return dict.fromkeys(layers)
    return {
        layer: ((1, 1, int(m[2])), layer[: m.end(2)]) if m is not None and m[1] == word else None
        for layer, m in named.items()
    }


def _place(layer: str) -> tuple[tuple[int, ...], str] | None:
    """Sorting key of a layer's block in the order of the forward pass, and the block's path; None outside of blocks.

    Latent diffusion counts `up` from the output (its Decoder runs the levels in reverse), diffusers `up_blocks` from the middle.
    """
    path = layer.lower()
    number = _BLOCK.search(path) or _ANY_NUMBER.search(path)
    staged = _STAGED.search(path)
    if staged is not None and (number is None or staged.start() <= number.start() + 1):
        before, stage = path[: staged.start("outer")], staged["stage"]
        nested = staged["inner"] is not None and staged["unit"] in _UNITS[stage]
        outer = int(staged["outer"])
        key = [_word(before, _SIDES), _word(before, _ARMS), -outer if stage == "up" else outer]
        if nested:
            return (*key, int(staged["inner"])), layer[: staged.end("inner")]
        return (*key, *([_LAST] if key[1] != 1 else [])), layer[: staged.end("outer")]
    if number is None:
        return None
    before = path[: number.start(1)]
    return (_word(before, _SIDES), _word(before, _ARMS), int(number[1])), layer[: number.end(1)]


@lru_cache(maxsize=4096)
def _word(before: str, words: tuple[tuple[int, str], ...]) -> int:
    """The place of the first of `words` that is a part of the path `before` a block's number."""
    parts = re.split(r"[./]", re.sub(r"[._/]?\d*$", "", before))
    return next((place for place, word in words if any(re.fullmatch(word, part) for part in parts)), 1)


def _among(layer: str, recurrent: set[str]) -> LayerKind:
    """The kind of a layer whose neighbours are known: the way out of a state-space mixer is named as that of an attention."""
    at = re.search(r"[./]mixer[./]out_proj", layer)
    return "block" if at is not None and layer[: at.start()] in recurrent else kind(layer)


def block(layer: str) -> int | None:
    """Block number that a path names."""
    lower = layer.lower()
    matched = _BLOCK.search(lower) or _ANY_NUMBER.search(lower)
    return int(matched.group(1)) if matched else None


def kind(layer: str) -> LayerKind:
    """What a layer is, whichever of its like."""
    return _kind(_NUMBER.sub("0", layer.lower()))


@lru_cache(maxsize=4096)
def _kind(layer: str) -> LayerKind:
    """What a layer is, by the grammar that public models' names share: a path of units, of which the innermost that is
    named as attention, feed-forward, embedding or head decides, and a leaf that says which part of it; numbers count."""
    path = _FUSED.sub("", _LEAF.sub("", layer))
    parts = [part for part in re.split(r"[./]", path) if not part.isdigit()]
    leaf = parts[-1] if parts else ""
    numbered = block(path) is not None
    if any(_part(_NORM).fullmatch(part) for part in parts[-2:]):
        return "norm"
    if _part(_STATE_SPACE).search(path):
        return "block"
    if _is_head(path, leaf, numbered):
        return "lm_head"
    if _part(_EMBEDDING).search(path):
        return "embedding"
    unit = _unit(path, parts)
    if unit == "attention":
        words = set(leaf.split("_"))
        return "attention_output" if words & _OUTWARD and not words & _INWARD else "attention_qkv"
    if unit == "mlp":
        return "mlp"
    for found, own in _KIND_WORDS:
        if _part(own).search(path):
            return found
    return "block" if numbered else "other"


def _is_head(path: str, leaf: str, numbered: bool) -> bool:
    """Whether the path is that of an output head: named so before any number, or the whole of a classifier's last layer."""
    head = _part(_HEAD).search(path) or re.search(r"(?:^|[./])predictions[./]decoder", path)
    if head is not None:
        return block(path[: head.start()]) is None
    return path == "fc" or (leaf in ("output", "ff_out") and not numbered)


def _unit(path: str, parts: list[str]) -> str | None:
    """The innermost unit around a layer, itself included: attention or mlp."""
    if _BERT_MLP.search(path):
        return "mlp"
    for part in reversed(parts):
        if re.fullmatch(_MLP, part):
            return "mlp"
        if re.fullmatch(_ATTENTION, part):
            return "attention"
    return None


def _depth(layer: str, top: int | None) -> int | None:
    """Depth of a layer outside of blocks, where its kind says it."""
    what = kind(layer)
    if what == "embedding":
        return -1
    if what == "norm":
        return None if top is None else top + 1
    if what == "lm_head":
        return None if top is None else top + 2
    return None
