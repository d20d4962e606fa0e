"""torchtitan consoles: `step: 10  loss: 7.1  grad_norm: 1.2  memory: 9.46GiB(64.99%)  tps: 7,282  mfu: 1.2%`.

Colours around the fields are taken off; without LOG_RANK every rank prints the line, and each keeps its own rows.
`validate step:` lines are evaluation (components/metrics.py).
"""

from __future__ import annotations

import re
from typing import Final

from gdiag.ingesters import console
from gdiag.ingesters.console import Grammar
from gdiag.ingesters.reading import Input, Options, Reading

FORMAT: Final = "torchtitan"
_GRAMMAR: Final = Grammar(
    format=FORMAT,
    sniff=re.compile(rb"(?<!\w)step:[ \t]*\d+[ \t]+loss:[ \t]*\S+"),
    marker="step:",
    needs=("loss:",),
    rename={"tps": "tokens per second per device"},
    evaluation="validate",
)


def recognise(given: Input) -> float:
    """By its step lines."""
    return console.recognise(given, _GRAMMAR)


def read(given: Input, options: Options) -> Reading:
    """The whole console."""
    return console.read(given, options, _GRAMMAR)
