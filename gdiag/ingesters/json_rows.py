"""JSON line by line: what the columnar readers cannot take, and what they must know beforehand."""

from __future__ import annotations

import json
from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from typing import Final

import polars as pl
from polars.datatypes import DataTypeClass

from gdiag.ingesters import flat

_LONGEST: Final = 16 << 20
_KEPT: Final = 1 << 16
"""Bytes of a bad line that are looked at again."""
_DECODER: Final = json.JSONDecoder()
_SAMPLE: Final = 400
_ENOUGH: Final = 20_000
"""Cells after which the schema is taken as known; a chunk with another key widens it."""


@dataclass(frozen=True, slots=True)
class Bad:
    """A line that gave no object."""

    line: int
    reason: str
    text: bytes


@dataclass(slots=True)
class Rows:
    """What a piece gave."""

    rows: list[dict[str, flat.Cell]] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    bad: list[Bad] = field(default_factory=list)
    glued: int = 0
    repaired: int = 0


def parse(data: bytes, first: int) -> Rows:
    """Every object; several on a line are taken apart, NUL bytes and broken UTF-8 are dropped, the rest is kept as bad."""
    found = Rows()
    pieces = data.split(b"\n")
    for number, raw in enumerate(pieces, first):
        if not raw.strip():
            continue
        last = number - first == len(pieces) - 1
        _parse_line(found, raw, number, last)
    return found


def _parse_line(found: Rows, raw: bytes, number: int, last: bool) -> None:
    if len(raw) > _LONGEST:
        found.bad.append(Bad(number, f"line of {len(raw) >> 20} MiB", raw[:_KEPT]))
        return
    clean = raw.replace(b"\0", b"") if b"\0" in raw else raw
    text = clean.decode("utf-8", errors="replace").strip()
    damaged = clean is not raw or (not raw.isascii() and "\ufffd" in text)
    before = len(found.rows)
    try:
        reason = _objects(found, text, number)
    except RecursionError:
        reason = "nested too deep"
    read = len(found.rows) - before
    if reason:
        cut = last and reason == "no JSON object" and text.startswith("{")
        found.bad.append(Bad(number, "cut off at the end of the file" if cut else reason, raw[:_KEPT]))
    found.glued += read > 1
    found.repaired += bool(read and damaged and not reason)


def _objects(found: Rows, text: str, number: int) -> str:
    """Appends the line's objects; returns why something on it is none, or nothing."""
    position, reason = 0, ""
    while position < len(text):
        try:
            record, position = _DECODER.raw_decode(text, position)
        except ValueError:
            reason = "no JSON object"
            # A line that lost its end may have the next object glued to it.
            following = text.find('{"', position + 1)
            if following < 0:
                break
            position = following
            continue
        if isinstance(record, dict):
            found.rows.append(flat.flatten(record))
            found.lines.append(number)
        else:
            reason = reason or "no JSON object"
        while position < len(text) and text[position] in " \t\r,;\x1e":
            position += 1
    return reason


def keys(raw: bytes) -> set[str]:
    """The names of a row's cells, none where it is no object."""
    try:
        record = json.loads(raw)
        return set(flat.flatten(record)) if isinstance(record, dict) else set()
    except (ValueError, RecursionError):
        return set()


def learn(data: bytes, known: Container[str] = ()) -> dict[str, pl.DataType]:
    """Key → type of the first rows, less the keys that are known.

    A key whose type stays unknown is left out, and so found as missing later.
    """
    schema: dict[str, pl.DataType] = {}
    seen: dict[str, type] = {}
    lines = data.split(b"\n")[:-1] or [data]
    step = max(1, len(lines) // _SAMPLE)
    cells = 0
    for raw in [*lines[: _SAMPLE // 2], *lines[_SAMPLE // 2 :: step]]:
        try:
            record = json.loads(raw)
        except (ValueError, RecursionError):
            continue
        if isinstance(record, dict):
            cells += len(record)
            # Only what differs from the row before in kind is looked at closely.
            fresh = {
                k: v
                for k, v in record.items()
                if k not in known and (seen.get(k) is not type(v) or isinstance(v, dict | list))
            }
            if fresh:
                schema = widen(schema, {k: _type(v) for k, v in fresh.items()})
                seen.update((k, type(v)) for k, v in fresh.items())
        if cells > _ENOUGH:
            break
    return {name: kind for name, kind in schema.items() if _complete(kind)}


def widen(known: Mapping[str, pl.DataType], seen: Mapping[str, pl.DataType]) -> dict[str, pl.DataType]:
    """The smallest schema that holds both; every number is Float64."""
    merged = dict(known)
    for name, kind in seen.items():
        merged[name] = _join(merged[name], kind) if name in merged else kind
    return merged


def _join(a: pl.DataType, b: pl.DataType) -> pl.DataType:
    if a == b or b == pl.Null:
        return a
    if a == pl.Null:
        return b
    if isinstance(a, pl.Struct) and isinstance(b, pl.Struct):
        return pl.Struct(widen(_fields(a), _fields(b)))
    if isinstance(a, pl.List) and isinstance(b, pl.List):
        return pl.List(_join(_inner(a), _inner(b)))
    if a.is_numeric() and b.is_numeric():
        return pl.Float64()
    return pl.String()


def _type(value: object) -> pl.DataType:
    if value is None:
        return pl.Null()
    if isinstance(value, bool):
        return pl.Boolean()
    if isinstance(value, int | float):
        return pl.Float64()
    if isinstance(value, dict):
        return pl.Struct({str(k): _type(v) for k, v in value.items()})
    if isinstance(value, list):
        inner: pl.DataType = pl.Null()
        for item in {type(item): item for item in value}.values():
            inner = _join(inner, _type(item))
        return pl.List(inner)
    return pl.String()


def _fields(kind: pl.Struct) -> dict[str, pl.DataType]:
    return {f.name: _instance(f.dtype) for f in kind.fields}


def _inner(kind: pl.List) -> pl.DataType:
    return _instance(kind.inner)


def _instance(kind: pl.DataType | DataTypeClass) -> pl.DataType:
    return kind if isinstance(kind, pl.DataType) else kind()


def _complete(kind: pl.DataType) -> bool:
    """Whether nothing in the type is still unknown."""
    if isinstance(kind, pl.Struct):
        return all(_complete(k) for k in _fields(kind).values()) and bool(kind.fields)
    if isinstance(kind, pl.List):
        return _complete(_inner(kind))
    return kind != pl.Null
