"""Files of nothing but lines of home-made checks such as `Step 41: NaN gradient in blocks.0.fc`."""

from __future__ import annotations

import re
from typing import Final

from gdiag.ingesters import console, nonfinite_lines
from gdiag.ingesters.console import Found
from gdiag.ingesters.reading import Input, Options, Reading

FORMAT: Final = "layer-lines"
_SNIFF: Final = re.compile(
    rb"(?im)\b(?:step|iter(?:ation)?)\W{0,3}\d+\W{1,3}(?:nan|inf)(?:/inf)?(?:inite)? (?:in )?(?:gradients?|grads?|weights?|loss|param\w*)\b"
)


def recognise(given: Input) -> float:
    """By its lines; weaker than any format with a series."""
    return 0.3 if console.matches(given, _SNIFF, (b"radient", b"eight", b"oss", b"grad")) else 0.0


def read(given: Input, options: Options) -> Reading:
    """One row per step that a line names."""
    table = console.lines_of(given)
    found = Found(table, nonfinite_lines.rows(table), console.no_rejects())
    return console.finish(given, options, FORMAT, found, notes=("only steps with a non-finite value are named",))
