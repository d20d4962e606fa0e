"""The records inside JSON that collectors write: a document, a list, objects glued together, a query's answer, or one a line."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Final

LOOK: Final = 40
"""Records that are looked at to tell what a document is."""
INSIDE: Final = ("_source", "result", "labels", "stream")
"""Objects whose fields count as the record's own."""


def line_by_line(data: bytes) -> bool:
    """Whether every line is an object of its own rather than all of them one document."""
    return parsed(data.lstrip().partition(b"\n")[0]) is not None and b"\n" in data.strip()


def records(data: bytes, *, whole: bool) -> Iterator[Mapping[str, object] | str]:
    """Objects line by line, the text of lines that are none; of one document those of its list.

    whole: the data are complete, so that a document can be read; else its first objects are looked for.
    """
    if line_by_line(data):
        for raw in data.rstrip(b"\n").split(b"\n"):
            record = parsed(raw)
            yield record if record is not None else raw.decode("utf-8", errors="replace").strip()
        return
    text_ = data.decode("utf-8", errors="replace").strip()
    try:
        yield from _inside(json.loads(text_))
        return
    except (ValueError, RecursionError):
        pass
    yield from _loose(text_, most=None if whole else LOOK)


def _loose(text_: str, most: int | None) -> Iterator[Mapping[str, object]]:
    """Complete objects of a document that is cut, from where its list begins."""
    decoder = json.JSONDecoder()
    at = max(text_.find("[") + 1, 0)
    count = 0
    while (at := text_.find("{", at)) >= 0 and (most is None or count < most):
        try:
            record, at = decoder.raw_decode(text_, at)
        except (ValueError, RecursionError):
            at += 1
            continue
        for found in _inside([record]):
            count += 1
            yield found


def _inside(document: object) -> Iterator[Mapping[str, object]]:
    """Records of a query's answer: Loki's streams, CloudWatch's events and fields, Elasticsearch's hits, a plain list."""
    if isinstance(document, dict):
        for name in ("data", "result", "hits", "events", "results", "entries", "logs"):
            if isinstance(inner := document.get(name), dict | list):
                yield from _inside(inner)
                return
        if isinstance(values := document.get("values"), list):
            labels = document.get("stream")
            for pair in values:
                if isinstance(pair, list) and len(pair) > 1:
                    yield {"timestamp": pair[0], "line": pair[1], "labels": labels if isinstance(labels, dict) else {}}
            return
        yield document
    elif isinstance(document, list):
        for item in document:
            if isinstance(item, list) and item and all(isinstance(c, dict) and "field" in c for c in item):
                yield {str(c["field"]): c.get("value") for c in item}
            elif isinstance(item, dict | list):
                yield from _inside(item) if isinstance(item, list) or "values" in item else iter((item,))


def parsed(raw: bytes) -> Mapping[str, object] | None:
    if raw.lstrip()[:1] != b"{":
        return None
    try:
        record = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None
