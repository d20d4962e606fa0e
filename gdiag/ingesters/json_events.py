"""JSON objects behind a mark in the lines of a console; lines of several processes may run together."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

import polars as pl

from gdiag.ingesters import text as plain

_DECODER: Final = json.JSONDecoder()
_NEAR: Final = 4
"""Characters behind the mark among which an object opens."""


def events(
    marked: pl.DataFrame, mark: str, reason: str, bad: list[dict[str, object]]
) -> Iterator[tuple[int, dict[str, object]]]:
    """Line and event of every mark in `marked` (`line`, `text`); what opens and is no JSON goes to `bad`."""
    for line, text in marked.iter_rows():
        for behind in text.split(mark)[1:]:
            try:
                event, _ = _DECODER.raw_decode(behind.lstrip())
            except (ValueError, RecursionError):
                if "{" in behind[:_NEAR]:
                    bad.append({"line": line, "reason": reason, "text": plain.redact(text, 200)})
                continue
            if isinstance(event, dict):
                yield line, event
