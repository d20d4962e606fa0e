"""JSON objects behind a mark in the lines of a console; lines of several processes may run together."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Final

import polars as pl

from gdiag.ingesters import text as plain

_DECODER: Final = json.JSONDecoder()
_BARE: Final = re.compile(r"(?<=[:\[,\s])-?(nan|inf(?:inity)?)(?=\s*[,}\]])", re.IGNORECASE)
_WORDS: Final = {"n": "NaN", "i": "Infinity"}
_MINUS: Final = {"n": "NaN", "i": "-Infinity"}
_NEAR: Final = 4
"""Characters behind the mark among which an object opens."""


def decoded(text: str) -> tuple[object, int]:
    """The value that the text begins with and where it ends; numbers that are none may be written as C and Python print them.

    Raises:
        ValueError: it begins with no JSON.
        RecursionError: too deep.
    """
    try:
        return _DECODER.raw_decode(text)
    except ValueError:
        if not _BARE.search(text):
            raise
    return _DECODER.raw_decode(
        _BARE.sub(lambda m: _WORDS[m[1].lower()[0]] if m[0][0] != "-" else _MINUS[m[1].lower()[0]], text)
    )


def events(
    marked: pl.DataFrame, mark: str, reason: str, bad: list[dict[str, object]]
) -> Iterator[tuple[int, dict[str, object]]]:
    """Line and event of every mark in `marked` (`line`, `text`); what opens and is no JSON goes to `bad`."""
    for line, text in marked.iter_rows():
        for behind in text.split(mark)[1:]:
            try:
                event = decoded(behind.lstrip())[0]
            except (ValueError, RecursionError):
                if "{" in behind[:_NEAR]:
                    bad.append({"line": line, "reason": reason, "text": plain.redact(text, 200)})
                continue
            if isinstance(event, dict):
                yield line, event
