"""JSON objects behind a mark in the lines of a console, one event a line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

import polars as pl

from gdiag.ingesters import text as plain

_NEAR: Final = 4
"""Characters behind the mark among which an object opens."""


def events(
    marked: pl.DataFrame, mark: str, reason: str, bad: list[dict[str, object]]
) -> Iterator[tuple[int, dict[str, object]]]:
    """Line and event of every line of `marked` (`line`, `text`, all with the mark); what opens and is no JSON goes to `bad`."""
    for line, text in marked.iter_rows():
        behind = text[text.index(mark) + len(mark) :].strip()
        try:
            event = json.loads(behind)
        except (ValueError, RecursionError):
            if "{" in behind[:_NEAR]:
                bad.append({"line": line, "reason": reason, "text": plain.redact(text, 200)})
            continue
        if isinstance(event, dict):
            yield line, event
