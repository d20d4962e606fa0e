"""llm.c main.log: `s:10 trl:9.9 lr:0.00001 norm:3.85` for training, `s:0 tel:11.0` for validation."""

from __future__ import annotations

import re
from typing import Final

from gdiag.ingesters import console
from gdiag.ingesters.console import Grammar
from gdiag.ingesters.reading import Input, Options, Reading

FORMAT: Final = "llm.c"
_GRAMMAR: Final = Grammar(
    format=FORMAT,
    sniff=re.compile(rb"(?m)^s:\d+ t[re]l:\S+"),
    marker="s:",
    needs=("l:",),
    rename={"trl": "loss", "tel": "eval_loss", "norm": "grad_norm"},
)


def recognise(given: Input) -> float:
    """By its step lines."""
    return console.recognise(given, _GRAMMAR)


def read(given: Input, options: Options) -> Reading:
    """The whole console."""
    return console.read(given, options, _GRAMMAR)
