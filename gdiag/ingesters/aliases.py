"""What a metric is called in other people's logs: a column's name held against the alias table.

Names are compared after `simplify`: lower case, every run of blanks, hyphens, slashes and dots one underscore.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from gdiag.ingesters.alias_table import ALIASES, TURNED, Turn

_PREFIX = re.compile(
    r"^(train|training|trainer|metrics?|learning|optim|optimizer|perf|performance|model|stats|charts|runtime|timing|"
    r"monitoring|main|throughput|device|speed|time|log|global|data|memory|misc|state|debug|losses|lr|rl|actor)_(?=.)"
)
_OF_A_PART = re.compile(r"^(?:rl|actor)_")
WEAK: Final = 500
"""Rank from which a name is only like those of its metric."""
_PART: Final = 200
"""A loss with such a prefix is one of several: a total is the better one."""
_EVAL = re.compile(
    r"(^|_)(val|valid|validation|eval|evaluation|evals|test|testing|dev|holdout|heldout|tel)(?=_|\d|$)|_vs_validation|lm_loss_validation"
)
_FAMILIES: Final[tuple[tuple[re.Pattern[str], str], ...]] = (
    (re.compile(r"^(?:optim_)?(?:lr|learning_rate)_[a-z0-9_]+$"), "lr"),
    (re.compile(r"(^|_)cur(?:rent)?_lr$"), "lr"),
    (re.compile(r"^grad_(?:\d+_\d+|\d+)_norm_total$|_grad_gnorm$"), "grad_norm"),
    (re.compile(r"(^|_)[a-uw-z]?loss(_\d+)?$"), "loss"),
)
_NO_LOSS = re.compile(r"frac|finite|skip|coef|weight|scale|best|final|threshold")
_LOSS = re.compile(r"(^|_)(loss|logloss|mlogloss|nll|crossentropyloss|crossentropy|cross_entropy|ce)(_|$)")
_TIMES: Final = frozenset({"step_time", "data_time", "compute_time", "comm_time", "elapsed", "time"})
_UNITS: Final = {
    "ns": 1e-9, "us": 1e-6, "µs": 1e-6, "usec": 1e-6, "microseconds": 1e-6, "ms": 1e-3, "msec": 1e-3, "millis": 1e-3,
    "milliseconds": 1e-3, "s": 1.0, "sec": 1.0, "secs": 1.0, "second": 1.0, "seconds": 1.0, "min": 60.0, "minutes": 60.0,
    "h": 3600.0, "hours": 3600.0,
}  # fmt: skip
_BYTES: Final = {"b": 1.0, "bytes": 1.0, "kb": 2.0**10, "kib": 2.0**10, "mb": 2.0**20, "mib": 2.0**20, "gb": 2.0**30,
                 "gib": 2.0**30}  # fmt: skip
_NO_UNIT = re.compile(r"(?<=\S)\s*[\[(]\s*(?:nats?|-|a\.?u\.?)\s*[\])]$", re.IGNORECASE)
"""A unit in brackets that scales nothing: `loss [nat]`, `grad_norm [-]`."""
_UNIT = re.compile(r"^(.+?)(?:_in)?_([a-zµ]+)$")


@dataclass(frozen=True, slots=True)
class Claim:
    """What a column says it is."""

    canonical: str
    rank: int
    """Lower is the better name."""
    scale: float | None = None
    """Factor to the canonical unit when the name gives one."""
    turn: Turn = ""


LONGEST_NAME: Final = 512
"""Characters of a name that is looked at; a longer one is text, and patterns of names would take for ever on it."""


@lru_cache(maxsize=65536)
def simplify(name: str) -> str:
    """A name without differences that mean nothing: `Train/LM Loss` → train_lm_loss."""
    plain = re.sub(r"(?<=[a-z])(?=[A-Z][a-z])", "_", name.strip()) if not name.isupper() else name
    text = re.sub(r"[\s\-/.:|]+", "_", re.sub(r"'s\b", "", plain.lower()))
    text = re.sub(r"[()\[\]{}\"']+", "_", text)
    lead = "_" if text.startswith("_") and not text.startswith("__") else ""
    return lead + re.sub(r"_+", "_", text).strip("_")


@lru_cache(maxsize=65536)
def claim(name: str) -> Claim | None:
    """The reading of a name that the alias table holds, with or without prefixes and unit."""
    if len(name) > LONGEST_NAME:
        return None
    text = simplify(_NO_UNIT.sub("", name))
    if _EVAL.search(text):
        return _eval_claim(text)
    weaker = 0
    while True:
        found = _exact(text) or _exact(text.replace("_", "")) or _with_unit(text)
        if found is not None:
            return Claim(found.canonical, found.rank + weaker, found.scale, found.turn)
        cut = _PREFIX.sub("", text, count=1)
        if cut == text:
            break
        text, weaker = cut, weaker + (_PART if _OF_A_PART.match(text) else 1)
    return None


def stem(name: str) -> str:
    """A name without prefixes that say where it was logged: `train/Loss` → loss."""
    text = simplify(name[:LONGEST_NAME])
    while (cut := _PREFIX.sub("", text, count=1)) != text:
        text = cut
    return text.replace("_", "")


def family(name: str) -> Claim | None:
    """The weak reading of a name that is like many: `lr-AdamW/pg1`, `train/box_loss`."""
    if len(name) > LONGEST_NAME:
        return None
    text = simplify(name)
    for pattern, canonical in _FAMILIES:
        if pattern.search(text) and not _EVAL.search(text) and not _NO_LOSS.search(text):
            penalty = WEAK + 200 if canonical == "loss" else WEAK
            return Claim(canonical, penalty + len(text) + (0 if "total" in text else 50))
    return None


def _eval_claim(text: str) -> Claim | None:
    if text in {"eval_accuracy_is_loss", "tel"} or _LOSS.search(text):
        order = ("eval_loss", "val_loss", "validation_loss", "valid_loss")
        first = order.index(text) if text in order else 10
        late = 5 if re.search(r"(^|_)test(?:ing)?(_|$)", text) else 0
        return Claim("eval_loss", first + late + (2 * text.count("_") if first == 10 else 0))
    return None


def _exact(text: str) -> Claim | None:
    place = _PLACES.get(text)
    if place is not None:
        return Claim(place[0], 10 * place[1])
    turned = TURNED.get(text)
    return None if turned is None else Claim(turned[0], 900, turn=turned[1])


def _with_unit(text: str) -> Claim | None:
    """`elapsed_time_per_iteration_ms`, `train_step_timing_in_s`, `memory_max_active_gib`."""
    matched = _UNIT.match(text)
    if matched is None:
        return None
    stem, unit = matched.groups()
    found = _exact(stem)
    while found is None and (cut := _PREFIX.sub("", stem, count=1)) != stem:
        stem = cut
        found = _exact(stem)
    if found is None:
        return None
    if found.canonical in _TIMES and unit in _UNITS:
        return Claim(found.canonical, found.rank, _UNITS[unit])
    if found.canonical == "memory" and unit in _BYTES:
        return Claim(found.canonical, found.rank, _BYTES[unit])
    return None


_PLACES: Final = {name: (canonical, i) for canonical, names in ALIASES.items() for i, name in enumerate(names)}
