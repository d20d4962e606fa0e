"""nanoGPT consoles: `iter 10: loss 3.1, time 161.8ms, mfu -100.00%` and `step 0: train loss 4.2, val loss 4.3`.

mfu is -100 in the first rows; the iteration after an evaluation bears its time (train.py).
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

import polars as pl

from gdiag.ingesters import console, fields
from gdiag.ingesters.console import Grammar
from gdiag.ingesters.reading import Input, Options, Reading

FORMAT: Final = "nanogpt"
_LONE: Final = 0.1
_GRAMMAR: Final = Grammar(
    format=FORMAT,
    sniff=re.compile(rb"iter \d+: loss \S+, time|step \d+: train loss \S+, val loss \S+"),
    hints=(b"iter ", b": train loss "),
    marker="iter ",
    shape=r"\d+: ",
    needs=("loss",),
    rename={"time": "step_time"},
    drop=("mfu",),
)


def recognise(given: Input) -> float:
    """By its step lines; a lone estimate may stand before the lines of another program."""
    sure = console.recognise(given, _GRAMMAR)
    return sure if sure > console.sureness(1) or b": loss " in console.sample(given) else min(sure, _LONE)


def read(given: Input, options: Options) -> Reading:
    """The whole console; estimates over many batches are rows of their own."""
    found = console.find(given, options, _GRAMMAR)
    steps = console.lines_with(found.table, "step ", ("train loss", "val loss"))
    got = fields.read(steps, marker="step ", shape=r"\d+: train loss")
    if len(got.wide):
        estimate = console.with_prefix(got.wide.rename({"val loss": "eval_loss"}, strict=False), options)
        if len(found.wide):
            estimate = estimate.drop("train loss", strict=False)
            wide = pl.concat([found.wide, estimate], how="diagonal_relaxed").sort("line", maintain_order=True)
        else:
            wide = estimate
        found = replace(found, wide=wide)
    return console.finish(given, options, FORMAT, found, rename=_GRAMMAR.rename)
