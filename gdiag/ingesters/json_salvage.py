"""JSON documents that are cut or damaged: what stands complete before the damage."""

from __future__ import annotations

import json
import re
from typing import Final

import polars as pl

from gdiag.errors import InputError
from gdiag.ingesters import json_mending, values
from gdiag.ingesters.reading import Input

LONGEST: Final = 1 << 30
"""A longer document is no log, B."""
_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"|["\[\]{},]', re.DOTALL)
_CLOSING: Final = {"[": "]", "{": "}"}
_REJECTS: Final = {"line": pl.Int64(), "reason": pl.String(), "text": pl.String()}
_TRIES: Final = 4
"""Ends of complete values that are tried, the last one first."""


def document(given: Input) -> tuple[object, pl.DataFrame | None]:
    """The document, less damaged elements inside it; where it is cut what stands before that, the rest as a reject.

    Raises:
        InputError: too large, or nothing complete stands before the damage.
    """
    data = given.data()
    if len(data) > LONGEST:
        raise InputError(f"{given.path} is one JSON document of {len(data) >> 20} MiB: too large to be a log")
    text = data.decode("utf-8", errors="replace")
    try:
        return json.loads(text), None
    except json.JSONDecodeError as error:
        if (whole := json_mending.mended(text)) is not None:
            bad = pl.DataFrame(whole[1], schema=_REJECTS, orient="row") if whole[1] else None
            return whole[0], bad
        found, end = before(text, error.pos)
        if found is None:
            raise InputError(f"{given.path} is a damaged JSON document ({error})") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{given.path} is a damaged JSON document ({error})") from error
    return _padded(found), left(text, end)


def _padded(document: object) -> object:
    """The document with null for what its last list lost by the cut, where the lists before it have one length."""
    if not isinstance(document, dict) or not document:
        return document
    last = next(reversed(document))
    value = document[last]
    if not isinstance(value, list):
        return {**document, last: _padded(value)}
    lengths = {len(v) for k, v in document.items() if k != last and isinstance(v, list)}
    more = lengths.pop() - len(value) if len(lengths) == 1 else 0
    return {**document, last: [*value, *[None] * more]}


def left(text: str, end: int) -> pl.DataFrame:
    """What stands behind the last complete value, as a reject."""
    rest = text[end:].strip().lstrip(",").strip()
    reason = f"cut or damaged: {len(rest)} characters to the end of the file not read"
    return pl.DataFrame([(text.count("\n", 0, end) + 1, reason, values.escape(rest))], schema=_REJECTS, orient="row")


def before(text: str, damage: int) -> tuple[object | None, int]:
    """The document up to the last complete value before the damage, its brackets closed, and where that ends."""
    open_: list[str] = []
    ends: list[tuple[int, str]] = []
    for token in _TOKEN.finditer(text, 0, damage):
        sign = token[0]
        if sign in _CLOSING:
            open_.append(_CLOSING[sign])
            ends.append((token.end(), "".join(reversed(open_))))
        elif sign in ("]", "}"):
            if not open_ or open_.pop() != sign:
                break
            ends.append((token.end(), "".join(reversed(open_))))
        elif sign == '"':
            break  # The string is not closed before the damage: what stands in it is no sign.
        elif sign == ",":
            ends.append((token.start(), "".join(reversed(open_))))
        del ends[:-_TRIES]
    for end, closing in reversed(ends):
        try:
            return json.loads(text[:end] + closing), end
        except (ValueError, RecursionError):
            continue
    return None, 0
