"""The record log inside a binary `.wandb` file: LevelDB's log format, CRC-32 of type and data, blocks of 32 KiB.

Written from the published writer (wandb/sdk/internal/datastore.py): seven bytes of header (`:W&B`, magic, version), then
chunks of checksum (4), length (2), type (1: full, 2 first, 3 middle, 4 last).
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import Final

MAGIC: Final = b":W&B"
_HEADER: Final = 7
_BLOCK: Final = 32768
_SEEDS: Final = {kind: zlib.crc32(bytes([kind])) for kind in (1, 2, 3, 4)}


class Damage:
    """What was found broken."""

    def __init__(self) -> None:
        self.broken = 0
        """Chunks with a wrong checksum or type."""
        self.cut = False
        """Whether the file ends inside a record."""


def records(data: bytes, damage: Damage) -> Iterator[bytes]:
    """Every record whose checksums hold; after damage reading goes on at the next block."""
    position, end = _HEADER, len(data)
    parts: list[bytes] = []
    while position < end:
        left = _BLOCK - position % _BLOCK
        if left < _HEADER:
            position += left
            continue
        if position + _HEADER > end:
            damage.cut = True
            return
        checksum, size, kind = struct.unpack_from("<IHB", data, position)
        if kind == 0 and size == 0:
            # Space that was reserved and never written.
            position += left
            continue
        chunk = data[position + _HEADER : position + _HEADER + size]
        if position + _HEADER + size > end:
            damage.cut = True
            return
        if kind not in _SEEDS or size > left - _HEADER or zlib.crc32(chunk, _SEEDS[kind]) != checksum:
            damage.broken += 1
            parts.clear()
            position += left
            continue
        position += _HEADER + size
        if kind == 1:
            parts.clear()
            yield chunk
        elif kind == 2:
            parts = [chunk]
        elif parts:
            parts.append(chunk)
            if kind == 4:
                yield b"".join(parts)
                parts.clear()
    damage.cut = damage.cut or bool(parts)
