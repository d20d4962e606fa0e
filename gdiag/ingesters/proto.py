"""Protocol buffers without their schemas: fields of a message as they stand in the bytes."""

from __future__ import annotations

import struct
from collections.abc import Iterator

Field = tuple[int, int | bytes]
"""Field number, and an int for a varint, else the raw bytes (8 for a double, 4 for a float)."""


def fields(data: bytes) -> Iterator[Field]:
    """Every field of a message in order.

    Raises:
        ValueError: the bytes are no message.
    """
    position, end = 0, len(data)
    while position < end:
        tag, position = varint(data, position)
        number, wire = tag >> 3, tag & 7
        if wire == 0:
            value, position = varint(data, position)
            yield number, value
            continue
        if wire == 2:
            size, position = varint(data, position)
        elif wire == 1:
            size = 8
        elif wire == 5:
            size = 4
        else:
            raise ValueError(f"wire type {wire}")
        if position + size > end:
            raise ValueError("field passes the end")
        yield number, data[position : position + size]
        position += size


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


def double(data: int | bytes) -> float:
    """Eight bytes as a number, NaN when they are something else."""
    return float(struct.unpack("<d", data)[0]) if isinstance(data, bytes) and len(data) == 8 else float("nan")


def text(data: int | bytes) -> str:
    """Bytes as text."""
    return data.decode("utf-8", errors="replace") if isinstance(data, bytes) else str(data)
