"""MaxText consoles: `completed step: 12, seconds: 10.2, TFLOP/s/device: …, Tokens/s/device: …, loss: 7.1`.

The first step's time is that of an asynchronous dispatch and is not used (metric_logger.py).
"""

from __future__ import annotations

import re
from typing import Final

from gdiag.ingesters import console
from gdiag.ingesters.console import Grammar
from gdiag.ingesters.reading import Input, Options, Reading

FORMAT: Final = "maxtext"
_GRAMMAR: Final = Grammar(
    format=FORMAT,
    sniff=re.compile(rb"completed step: \d+, seconds: [\d.]+"),
    marker="completed step:",
    separator=", ",
    needs=("seconds:",),
    rename={"seconds": "step_time"},
)


def recognise(given: Input) -> float:
    """By its step lines."""
    return console.recognise(given, _GRAMMAR)


def read(given: Input, options: Options) -> Reading:
    """The whole console."""
    return console.read(given, options, _GRAMMAR)
