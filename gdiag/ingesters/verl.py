"""verl consoles: `(TaskRunner pid=1) step:12 - actor/pg_loss:0.1 - actor/grad_norm:0.9 - timing_s/step:23.2`.

Long lines are wrapped by the worker's log inside numbers; the pieces are put together again where they carry the prefix.
"""

from __future__ import annotations

import re
from typing import Final

from gdiag.ingesters import console
from gdiag.ingesters.console import Grammar
from gdiag.ingesters.reading import Input, Options, Reading

FORMAT: Final = "verl"
_GRAMMAR: Final = Grammar(
    format=FORMAT,
    sniff=re.compile(rb"\bstep:\d+ - [\w/@.-]+:(?:np\.float\d+\()?[-\d.n]"),
    marker="step:",
    separator=" - ",
    needs=(" - ",),
)


def recognise(given: Input) -> float:
    """By its step lines."""
    return console.recognise(given, _GRAMMAR)


def read(given: Input, options: Options) -> Reading:
    """The whole console."""
    return console.read(given, options, _GRAMMAR)
