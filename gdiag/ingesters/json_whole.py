"""A JSON document that is a whole log: a list of rows, or an object of equally long columns."""

from __future__ import annotations

import json
import re
from typing import Final

import polars as pl

from gdiag.errors import InputError
from gdiag.ingesters import claims, columns, flat, json_columns, json_salvage
from gdiag.ingesters.reading import Input, Options, Reading

FORMAT = "json"
_LONGEST_LINE: Final = 16 << 20
_LINE: Final = 60_000
_SOME: Final = 2
"""Complete items that make a damaged document worth reading."""
_DECODER: Final = json.JSONDecoder()
_BETWEEN: Final = re.compile(r"[\s,]+")
_OPENED: Final = {b"{": (b'"', b"}"), b"[": (b"{", b"[", b"]", b'"', *(b"%d" % n for n in range(10)), b"-")}
"""What may stand first on the line below a bracket."""
_MORE: Final = "one object of final values: no series"


_LOSSES: Final = frozenset({"loss", "eval_loss"})
_FEW: Final = 2
"""Losses of so few epochs are a series: nobody sets a list of losses."""
_NAMED: Final = 5
_UNNAMED: Final = 20
"""Lists shorter than this are settings, not series, when their names say nothing."""


def recognise(given: Input) -> float:
    """A document that starts as a list of objects or as an object that goes on over lines or holds long lists."""
    head = given.head.lstrip()
    first, newline, rest = head.partition(b"\n")
    if newline and rest.strip() and (opened := _OPENED.get(first.strip())) and rest.lstrip()[:1] not in opened:
        return 0.0  # A bracket above something else opens nothing.
    if head[:1] == b"[":
        return 0.55 if head[1:200].lstrip()[:1] == b"{" else 0.0
    if head[:1] != b"{":
        return 0.0
    if not newline:
        return 0.0 if len(given.head) > _LINE and _another_line(given) else 0.97
    if not rest.strip():
        return 0.97
    return 0.55 if first.strip() == b"{" or (not first.rstrip().endswith(b"}") and rest.lstrip()[:1] == b'"') else 0.0


def _another_line(given: Input) -> bool:
    """Whether an object follows on a line below a first one that is longer than the head; lines above that are blank."""
    start = len(given.head) - len(given.head.lstrip())
    if given.content is not None:
        end = given.content.find(b"\n", start, _LONGEST_LINE)
        return end >= 0 and bool(given.content[end : end + 64].strip())
    if given.file is None:
        return False
    with given.file.open("rb") as file:
        file.seek(start)
        file.readline(_LONGEST_LINE)
        return bool(file.read(64).strip())


def read(given: Input, options: Options) -> Reading:
    """The rows or the columns.

    Raises:
        InputError: damaged from the start, or without a series.
    """
    document, rejects = json_salvage.document(given)
    if rejects is not None:
        items, more = _glued(given)
        if len(items) > (len(document) if isinstance(document, list) else 1):
            document, rejects = items, more
    if isinstance(document, dict):
        document = json_columns.split(document)
        rows, lists = json_columns.rows_in(document, options)
        if not rows and not any(len(items) >= _NAMED for items in lists.values()):
            # {"params": …, "history": {"loss": […], …}}: the columns stand one level below.
            named = json_columns.by_split(document)
            inner = [named] if named is not None else [v for v in document.values() if isinstance(v, dict)]
            inside = [json_columns.rows_in(columns_, options) for columns_ in inner]
            rows, lists = max(
                inside, key=lambda found: len(found[0]) + sum(map(len, found[1].values())), default=(rows, lists)
            )
        if lists and not rows:
            frame, notes = json_columns.table(lists, options)
            if frame is None:
                raise InputError(f"{given.path} is {_MORE}")
            told = claims.known(frame.columns, options)
            if frame.height < (_FEW if told & _LOSSES and not told & {"lr"} else _NAMED if told else _UNNAMED):
                raise InputError(f"{given.path} is {_MORE}")
            return columns.reading(given.path, FORMAT, frame, options, notes=notes, rows=1, line=None, rejects=rejects)
    else:
        rows = [flat.flatten(row) for row in document if isinstance(row, dict)] if isinstance(document, list) else []
    rows = [row for row in rows if row]
    if rejects is not None and len(rows) < _SOME:
        raise InputError(f"{given.path} is a damaged JSON document with {len(rows) or 'no'} complete row")
    if not rows:
        raise InputError(f"{given.path} is {_MORE}" if isinstance(document, dict) else f"{given.path} holds no rows")
    frame = flat.to_frame(rows, range(1, len(rows) + 1))
    columns.refuse_other(given.path, frame, options)
    return columns.reading(given.path, FORMAT, frame, options, rejects=rejects)


def _glued(given: Input) -> tuple[list[object], pl.DataFrame | None]:
    """Every complete item of documents glued together, or of a list without commas, and what is left as a reject."""
    text = given.data().decode("utf-8", errors="replace").lstrip().removeprefix("[")
    found: list[object] = []
    position = 0
    while (start := position + _gap(text, position)) < len(text):
        try:
            item, position = _DECODER.raw_decode(text, start)
        except (ValueError, RecursionError):
            break
        found.append(item)
    return found, json_salvage.left(text, start) if text[start:].strip().strip("]") else None


def _gap(text: str, position: int) -> int:
    matched = _BETWEEN.match(text, position)
    return matched.end() - position if matched else 0
