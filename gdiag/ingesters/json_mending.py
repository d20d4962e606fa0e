"""JSON documents with damage inside: the damaged element is set aside and what follows it is read.

In a list of rows the element is the row, in a list of numbers the number, in an object the value.
"""

from __future__ import annotations

import json
import re
from typing import Final

from gdiag.ingesters import json_gaps, values

Bad = tuple[int, str, str]
"""Line, reason and text of a reject."""

Known = tuple[int, list[tuple[str, int]]]
"""A place before which all is whole, and the brackets that are open there with their places: no text is looked at twice."""

_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"|["\[\]{},:]', re.DOTALL)
_ENDS: Final = {
    "row": re.compile(r"\}(?=\s*(?:,\s*\{|\]))"),
    "item": re.compile(r"(?=[,\]])"),
    "value": re.compile(r"(?=,\s*\"|\})"),
}
"""Where a damaged element ends."""
_PUT: Final = {"row": "{}", "value": "null"}
_BARE: Final = re.compile(r"(?<=[\[:,\s])([-+]?)(nan|inf|None|True|False)(?=\s*[,\]}])")
"""Python's own words, which are no JSON."""
_WORDS: Final = {"nan": "NaN", "inf": "Infinity", "None": "null", "True": "true", "False": "false"}
_MOST: Final = 20
_LARGEST: Final = 1 << 26
"""Content that is read again and again, B."""
_LONGEST: Final = 1 << 16
"""Characters of an element; damage that hides more is a cut."""


def mended(text: str) -> tuple[object, list[Bad]] | None:
    """The document without its damaged elements, and those as rejects; None where the damage reaches the end or is everywhere."""
    if len(text) > _LARGEST:
        return None
    text = _BARE.sub(lambda found: found[1].replace("+", "") * (found[2] == "inf") + _WORDS[found[2]], text)
    bad: list[Bad] = []
    known: Known = (0, [])
    for _ in range(_MOST):
        try:
            return json_gaps.filled(json.loads(text), bad), bad
        except json.JSONDecodeError as error:
            place = _element(text, error.pos, known)
            if place is None:
                return None
            start, end, kind, known = place
            damage = text[start:end].strip()
            put = _PUT.get(kind) or json_gaps.gap(len(bad), damage)
            bad.append((text.count("\n", 0, start) + 1, f"damaged {kind} of a JSON document", values.escape(damage)))
            text = text[:start] + put + text[end:]
        except (ValueError, RecursionError):
            return None
    return None


def past_row(text: str, start: int) -> int | None:
    """Where the damaged row that begins at `start` ends; None where no other row and no list's end follows."""
    end = _ENDS["row"].search(text, start, start + _LONGEST)
    return None if end is None else end.end()


def _element(text: str, damage: int, known: Known) -> tuple[int, int, str, Known] | None:
    """Start, end and kind of the element that holds the damage, and what is known there; None where nothing follows it."""
    begin, before = known if known[0] <= damage else (0, [])
    open_ = list(before)
    for token in _TOKEN.finditer(text, begin, damage):
        sign = token[0]
        if sign in "[{":
            open_.append((sign, token.start()))
        elif sign in "]}":
            if not open_:
                return None
            open_.pop()
        if sign[0] != '"':
            begin = token.end()
        elif sign == '"':
            break
    if not open_:
        return None
    kind = "item" if open_[-1][0] == "[" else "row" if len(open_) > 1 and open_[-2][0] == "[" else "value"
    start = open_[-1][1] if kind == "row" else begin
    if kind == "value" and not text[:start].rstrip().endswith(":"):
        return None
    end = _ENDS[kind].search(text, max(damage, start), start + _LONGEST)
    return None if end is None else (start, end.end(), kind, (start, open_[:-1] if kind == "row" else open_))
