"""LitGPT consoles: `Epoch 1 | iter 10 step 2 | loss train: 3.4, val: n/a | iter time: 12.3 ms (step) remaining time: 1:02:03`.

`iter` counts micro batches, `step` optimizer steps; only the lines marked `(step)` end one. Known from source code
(litgpt/pretrain.py, finetune/full.py).
"""

from __future__ import annotations

import re
from typing import Final

from gdiag.ingesters import console
from gdiag.ingesters.console import Grammar
from gdiag.ingesters.reading import Input, Options, Reading

FORMAT: Final = "litgpt"
_GRAMMAR: Final = Grammar(
    format=FORMAT,
    sniff=re.compile(rb"\| iter \d+ step \d+ \| loss train: \S+"),
    marker=" step ",
    shape=r"\d+ \| loss train",
    separator=" | ",
    needs=("| iter", "loss train:", "(step)"),
    rename={"loss train": "loss", "val": "eval_loss", "iter time": "step_time"},
    drop=("step) remaining time",),
)


def recognise(given: Input) -> float:
    """By its step lines."""
    return console.recognise(given, _GRAMMAR)


def read(given: Input, options: Options) -> Reading:
    """The whole console."""
    return console.read(given, options, _GRAMMAR)
