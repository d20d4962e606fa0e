"""modded-nanogpt records: the program itself, then `step:1/1875 train_loss:10.9 train_time:161ms step_avg:nanms`.

`step_avg` is the mean since step 10 and nan before it: the step time is taken from `train_time`, which starts again at
step 10. A file may hold many runs one after the other; each is a run of its own.
"""

from __future__ import annotations

import re
from typing import Final

from gdiag.ingesters import console
from gdiag.ingesters.console import Grammar
from gdiag.ingesters.reading import Input, Options, Reading

FORMAT: Final = "modded-nanogpt"
_GRAMMAR: Final = Grammar(
    format=FORMAT,
    sniff=re.compile(rb"(?m)^step:\d+/\d+ (?:train|val)_loss:\S+"),
    marker="step:",
    needs=("_loss:",),
    rename={"train_time": "elapsed"},
    drop=("step_avg",),
    several_runs=True,
)


def recognise(given: Input) -> float:
    """By its step lines."""
    return console.recognise(given, _GRAMMAR)


def read(given: Input, options: Options) -> Reading:
    """The whole console."""
    return console.read(given, options, _GRAMMAR)
