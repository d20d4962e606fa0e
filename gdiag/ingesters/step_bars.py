"""Consoles of `step N | loss: … | lr … | norm: … | dt: …ms | tok/sec: …` lines: build-nanogpt, nanochat, pith-train.

nanochat prints `step 00012/00500 (2.40%) | loss: … | lrm: … | dt: …ms`; its loss is a moving average, its `lrm` a factor
and no learning rate (scripts/base_train.py).
"""

from __future__ import annotations

import re
from typing import Final

from gdiag.ingesters import console
from gdiag.ingesters.console import Grammar
from gdiag.ingesters.reading import Input, Options, Reading

FORMAT: Final = "step-bars"
_GRAMMAR: Final = Grammar(
    format=FORMAT,
    sniff=re.compile(rb"(?m)\bstep\s+\d+(?:/\d+)?(?: \([\d.]+%\))?\s*\|\s*[A-Za-z][\w /-]*[: ]\s*[-\d.n]"),
    marker="step ",
    separator=" | ",
    needs=("|",),
    rename={"norm": "grad_norm", "gradient-norm": "grad_norm", "step-time": "step_time", "dt": "step_time"},
    drop=("lrm", "total time", "eta"),
)


def recognise(given: Input) -> float:
    """By its step lines."""
    return console.recognise(given, _GRAMMAR)


def read(given: Input, options: Options) -> Reading:
    """The whole console."""
    return console.read(given, options, _GRAMMAR)
