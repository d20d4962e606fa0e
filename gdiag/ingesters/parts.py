"""What a cell that is no single number means by its name: numbers per rank, per layer or per parameter group.

`flat` spreads such a cell over columns `name/0`, `name/1`, … where the name says of what they are; `plain` gives the name
under which such a column is looked up.
"""

from __future__ import annotations

import itertools
import re
from functools import lru_cache
from typing import Final, Literal

import polars as pl

from gdiag.ingesters import layer_names
from gdiag.ingesters.aliases import LONGEST_NAME, claim, simplify
from gdiag.ingesters.values import escape

Kind = Literal["rank", "layer", "group"]

MARK: Final = "\0[]"
"""Ends the name of a column that holds the lengths of lists which were not read."""
_WRAPPER: Final = re.compile(r"/(?:value|val|item|data|scalar|\$?number\w*|double_?value|float_?value)$", re.IGNORECASE)
"""What an object around one number calls it: `{"value": 2.3, "unit": "nat"}`, MongoDB's `{"$numberDouble": "2.3"}`."""
_INDEX: Final = re.compile(r"^(?P<name>.+)/(?P<index>\d{1,5})$")
_RANKS: Final = frozenset({"rank", "ranks", "worker", "workers"})
_PLACES: Final = frozenset(
    {"gpu", "gpus", "device", "devices", "process", "processes", "replica", "replicas", "node", "nodes"}
)
"""Words that mean ranks where `per` or one of its like stands before them."""
_LAYERS: Final = frozenset({"layer", "layers", "block", "blocks", "layerwise"})
_PER: Final = frozenset({"per", "by", "each", "all", "across", "every"})
_FILL: Final = _PER | {"wise", "list", "local", "of", "the"}
_GROUPS: Final = ("lr",)
_MANY: Final = frozenset({"loss", "eval_loss", "grad_norm", "lr", "step_time"})
"""Metrics whose names may stand in the plural."""
_VAGUE: Final = frozenset({"norm", "grad", "objective", "cost"})
"""Names that mean something else in the plural."""


@lru_cache(maxsize=65536)
def plain(name: str) -> str:
    """A column's name as the tables of names know it.

    loss/value → loss, loss_per_rank/3 → rank3/loss, layer_grad_norms/0 → grad_norms/layers.0, lr/1 → lr/group1.
    """
    if len(name) > LONGEST_NAME:
        return name
    name = _WRAPPER.sub("", name)
    matched = _INDEX.match(name)
    found = of(matched["name"]) if matched is not None else None
    if matched is None or found is None:
        return _of_many(name)
    kind, base, before = found
    index = int(matched["index"])
    if kind == "rank":
        return f"rank{index}/{before}{base}"
    return f"{before}{base}/layers.{index}" if kind == "layer" else f"{before}{base}/group{index}"


def _of_many(name: str) -> str:
    """A name in the plural as that of one value: `train_losses` is what a list of losses over the steps is called."""
    if not name.endswith("s") or claim(name) is not None or layer_names.parse(name) is not None:
        return name
    before, slash, last = name.rpartition("/")
    one = _singular(simplify(last).split("_"))
    found = None if one is None or one in _VAGUE else claim(one)
    return f"{before}{slash}{one}" if found is not None and found.canonical in _MANY else name


@lru_cache(maxsize=65536)
def of(name: str) -> tuple[Kind, str, str] | None:
    """Of what the numbers in lists of this name are, each number's own name, and the path before it; None where it does not say."""
    if len(name) > LONGEST_NAME:
        return None
    before, slash, last = name.rpartition("/")
    found = _of(simplify(last).split("_"))
    if found is not None:
        return *found, before + slash
    above, slash, parent = before.rpartition("/")
    found = _of([*simplify(parent).split("_"), *simplify(last).split("_")]) if parent else None
    return None if found is None else (*found, above + slash)


def speaks(name: str) -> bool:
    """Whether a list of this name would be of use, were it known of what its numbers are."""
    return of(name) is not None or _singular(simplify(name.rpartition("/")[2]).split("_")) is not None


def record(name: str, fields: list[str]) -> str | None:
    """The field of a list's objects that names each: their layer or rank; None where there is none.

    Args:
        name: what the list is called.
        fields: names of the objects' fields.
    """
    words = {*simplify(name.rpartition("/")[2]).split("_")}
    by_rank = next((field for field in fields if field.lower() in ("rank", "global_rank", "worker")), None)
    if by_rank is not None:
        return by_rank
    own: tuple[str, ...] = ("layer", "module", "layer_name", "param", "parameter", "param_name")
    if words & {*_LAYERS, "modules", "params", "parameters", "param", "gradients", "grads", "grad"}:
        own = (*own, "name", "path")
    return next((field for field in fields if field.lower() in own), None)


def _of(words: list[str]) -> tuple[Kind, str] | None:
    ranked = _RANKS & {*words} or any(a in _PER and b in _PLACES for a, b in itertools.pairwise(words))
    rest = [word for word in words if word not in _FILL and word not in _RANKS and word not in _LAYERS]
    if ranked:
        rest = [word for word in rest if word not in _PLACES]
        base = _singular(rest)
        return None if base is None else ("rank", base)
    if _LAYERS & {*words}:
        base = "_".join(rest)
        known = layer_names.parse(f"{base}/layers.0") if base else None
        return None if known is None else ("layer", base)
    base = _singular(words)
    if base is not None and (found := claim(base)) is not None and found.canonical in _GROUPS:
        return "group", base
    return None


def _singular(words: list[str]) -> str | None:
    """The metric that the words name, be they in the plural; None where they name none."""
    if not words:
        return None
    ways = (words, [*words[:-1], _one(words[-1])], [_one(word) for word in words])
    return next((text for text in map("_".join, ways) if claim(text) is not None), None)


def _one(word: str) -> str:
    if word.endswith("sses"):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def left_out(frame: pl.DataFrame) -> tuple[pl.DataFrame, list[str], list[str]]:
    """The frame without the marks of lists that were not read, a note about each that would be of use, the other names."""
    marks = [name for name in frame.columns if name.endswith(MARK)]
    useful = [name for name in marks if speaks(name.removesuffix(MARK))]
    notes = [_said(name.removesuffix(MARK), frame[name].drop_nulls()) for name in useful]
    return frame.drop(marks), notes, [name.removesuffix(MARK) for name in marks if name not in useful]


def _said(name: str, lengths: pl.Series) -> str:
    low, high = (int(str(end)) for end in (lengths.cast(pl.Int64).min(), lengths.cast(pl.Int64).max()))
    many = f"{low}" if low == high else f"{low} to {high}"
    rows = "1 row holds a list" if lengths.len() == 1 else f"{lengths.len()} rows hold lists"
    if of(name) is not None:
        return f"{escape(name, 40)} left out: {rows} of {many} that are not all numbers, or too many"
    return f"{escape(name, 40)} left out: {rows} of {many}, and the name does not say of what (per layer, per rank)"
