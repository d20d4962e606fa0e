"""Protocol buffers without their schemas: fields of a message as they stand in the bytes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

Field = tuple[int, int | bytes]
"""Field number, and an int for a varint, else the raw bytes (8 for a double, 4 for a float)."""


class Span(NamedTuple):
    """Where a field stands: its number, its wire type, and where its key, its content and what follows it begin."""

    number: int
    wire: int
    key: int
    start: int
    stop: int


def fields(data: bytes) -> Iterator[Field]:
    """Every field of a message in order.

    Raises:
        ValueError: the bytes are no message.
    """
    for number, wire, _, start, stop in spans(data, 0, len(data)):
        yield number, varint(data, start)[0] if wire == 0 else data[start:stop]


def spans(data: bytes, position: int, end: int) -> Iterator[Span]:
    """Where the fields of the message in data[position:end] stand, in order.

    Raises:
        ValueError: the bytes are no message.
    """
    while position < end:
        tag, start = varint(data, position)
        wire = tag & 7
        if wire == 0:
            stop = varint(data, start)[1]
        elif wire == 2:
            size, start = varint(data, start)
            stop = start + size
        elif wire == 1:
            stop = start + 8
        elif wire == 5:
            stop = start + 4
        else:
            raise ValueError(f"wire type {wire}")
        if stop > end:
            raise ValueError("field passes the end")
        yield Span(tag >> 3, wire, position, start, stop)
        position = stop


def varint(data: bytes, position: int) -> tuple[int, int]:
    """A base-128 number and the position behind it.

    Raises:
        ValueError: it does not end.
    """
    value = shift = 0
    try:
        while True:
            byte = data[position]
            position += 1
            value |= (byte & 127) << shift
            if byte < 128:
                return value, position
            shift += 7
            if shift > 63:
                raise ValueError("varint of more than ten bytes")
    except IndexError:
        raise ValueError("varint passes the end") from None


def signed(value: int) -> int:
    """A varint read as int64."""
    return value - (1 << 64) if value >= 1 << 63 else value


def text(data: int | bytes) -> str:
    """Bytes as text."""
    return data.decode("utf-8", errors="replace") if isinstance(data, bytes) else str(data)
