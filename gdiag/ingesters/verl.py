"""verl consoles: `(TaskRunner pid=1) step:12 - actor/pg_loss:0.1 - actor/grad_norm:0.9 - timing_s/step:23.2`.

Long lines are wrapped inside numbers by the worker's log; what follows a step line and goes on like one is put back to it.
Small learning rates are printed as 0.000. Known from source code and excerpts (utils/tracking.py, LocalLogger).
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from gdiag.ingesters import console
from gdiag.ingesters import text as plain
from gdiag.ingesters.console import Grammar
from gdiag.ingesters.reading import Input, Options, Reading

FORMAT: Final = "verl"
_GRAMMAR: Final = Grammar(
    format=FORMAT,
    sniff=re.compile(rb"\bstep:\d+ - [\w/@.-]+:(?:np\.float\d+\()?[-\d.n]"),
    marker="step:",
    shape=r"\d+ - ",
    separator=" - ",
    needs=(" - ",),
)
_START: Final = re.compile(rb"(?:^|[\s\]):])step:\d+ - ")
_FOLDS: Final = 8
"""Lines that one step line is wrapped into at most."""
_STEP: Final = re.compile(r"^step:\d+ - ")
_GOES_ON: Final = re.compile(r"^[^\s:]*(?::\S+)?(?: - [^\s:]+:\S+)+\s*$|^(?!step:\d+\s*$)[\w/@.:+-]+\s*$")


def recognise(given: Input) -> float:
    """By its step lines."""
    return console.recognise(given, _GRAMMAR)


def read(given: Input, options: Options) -> Reading:
    """The whole console."""
    return console.read(_unwrapped(given), options, _GRAMMAR)


def _unwrapped(given: Input) -> Input:
    """Step lines with what was wrapped off them; line numbers stay as they were.

    Workers wrap at a width: a file whose head has step lines and no wrapped one has none.
    """
    head = plain.clean(given.head).split(b"\n")[:-1]
    if any(_START.search(line) for line in head) and not _joined(head):
        return given
    lines = plain.clean(given.data()).split(b"\n")
    return replace(given, content=b"\n".join(lines)) if _joined(lines) else given


def _joined(lines: list[bytes]) -> bool:
    """Whether any line was wrapped; puts such lines together in place."""
    changed = False
    starts = [_START.search(line) is not None if b"step:" in line else False for line in lines]
    for index in [i for i in range(len(lines) - 1) if starts[i] and not starts[i + 1]]:
        prefix, message = plain.peel(lines[index].decode("utf-8", "replace"))
        if not _STEP.match(message):
            continue
        for after in range(index + 1, min(index + _FOLDS, len(lines))):
            before, rest = plain.peel(lines[after].decode("utf-8", "replace"))
            if not _GOES_ON.match(rest) or bool(before) != bool(prefix):
                break
            lines[index] += rest.encode()
            lines[after] = b""
            changed = True
    return changed
