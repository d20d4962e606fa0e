"""LitGPT consoles: `Epoch 1 | iter 10 step 2 | loss train: 3.4, val: n/a | iter time: 12.3 ms (step) remaining time: 1:02:03`.

`iter` counts micro batches, `step` optimizer steps; where lines are marked `(step)`, only these end one and are read.
Known from source code (litgpt/pretrain.py, finetune/full.py).
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from gdiag.ingesters import console
from gdiag.ingesters.console import Grammar
from gdiag.ingesters.reading import Input, Options, Reading

FORMAT: Final = "litgpt"
_GRAMMAR: Final = Grammar(
    format=FORMAT,
    sniff=re.compile(rb"\| iter\s+\d+ step\s+\d+ \| loss train:\s*\S+"),
    marker=" step ",
    shape=r"\s*\d+ \| loss train",
    separator=" | ",
    needs=("| iter", "loss train:"),
    rename={"loss train": "loss", "val": "eval_loss", "iter time": "step_time"},
    drop=("step) remaining time",),
)


def recognise(given: Input) -> float:
    """By its step lines."""
    return console.recognise(given, _GRAMMAR)


def read(given: Input, options: Options) -> Reading:
    """The whole console."""
    marked = b"(step)" in console.sample(given)
    grammar = replace(_GRAMMAR, needs=(*_GRAMMAR.needs, "(step)")) if marked else _GRAMMAR
    return console.read(given, options, grammar)
