"""Zip archives without their table of contents, which stands at the end: members one after the other by their own headers.

PKWARE's APPNOTE.TXT 6.3.10, sections 4.3.7 (local header), 4.3.9 (data descriptor) and 4.5.3 (sizes of Zip64).
"""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Final

MAGIC: Final = b"PK\x03\x04"
_CONTENTS: Final = b"PK\x01\x02"
_SIZES: Final = b"PK\x07\x08"
_LONGEST_SIZES: Final = 24
"""Bytes of the sizes behind a member, with their mark."""
_HEADER: Final = struct.Struct("<4sHHHHHLLLHH")
_ENCRYPTED, _SIZES_BEHIND, _UTF8 = 1, 8, 0x800
_STORED, _DEFLATED = 0, 8
_FULL: Final = 0xFFFFFFFF
_PIECE: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class Member:
    """What stands behind one local header."""

    name: str
    content: bytes
    whole: bool
    """Whether all of it is there."""
    refusal: str = ""
    """Why it cannot be unpacked, to be put behind its name; empty where it can."""
    end: int = -1
    """Where its packed content ends; -1 where that is not known."""

    def stream(self) -> IO[bytes]:
        return io.BytesIO(self.content)


def names(data: bytes) -> list[str]:
    """Names of the archive's own members: what is stored in one may be an archive too."""
    found = []
    at = data.find(MAGIC)
    while at >= 0:
        behind = at + len(MAGIC)
        if (head := _head(data, at)) is not None:
            name, flags, _, packed, _, begin = head
            found.append(name)
            behind = begin if flags & _SIZES_BEHIND else begin + packed
        at = data.find(MAGIC, behind)
    return found


def members(data: bytes, most: int) -> Iterator[Member]:
    """Members before the end of the data, folders among them, the last one perhaps in part.

    Args:
        data: the archive.
        most: bytes that one may become when it is unpacked; one that becomes more, and all behind it, is left.
    """
    at = data.find(MAGIC)
    while at >= 0 and (head := _head(data, at)) is not None:
        name, flags, method, packed, size, begin = head
        if flags & _ENCRYPTED or method not in (_STORED, _DEFLATED) or (method == _STORED and flags & _SIZES_BEHIND):
            end = begin + packed
            why = "is encrypted" if flags & _ENCRYPTED else "is packed in a way that is not read"
            yield Member(name, b"", False, why, end)
        elif method == _STORED:
            end = begin + packed
            yield Member(name, data[begin:end], end <= len(data), end=end)
        else:
            content, used, whole = _inflated(data, begin, most)
            end = begin + used if flags & _SIZES_BEHIND else begin + packed
            sized = flags & _SIZES_BEHIND != 0 or len(content) == size
            yield Member(name, content, whole and sized, end=end)
            if not whole:
                return
        at = data.find(MAGIC, end)


def behind(data: bytes, last: Member) -> bytes | None:
    """What stands behind the last member: the beginning of the table of contents, b"" where nothing does; None where it is cut."""
    if not last.whole or not 0 <= last.end <= len(data):
        return None
    rest = data[last.end : last.end + _LONGEST_SIZES + len(_CONTENTS)]
    if (at := rest.find(_CONTENTS)) >= 0:
        return rest[at:]
    sizes = rest.startswith(_SIZES) and len(rest) <= _LONGEST_SIZES
    return b"" if sizes or _CONTENTS.startswith(rest) else None


def _head(data: bytes, at: int) -> tuple[str, int, int, int, int, int] | None:
    """Name, flags, method, packed and unpacked size and where the content begins; None where the header is cut."""
    if at + _HEADER.size > len(data):
        return None
    _, _, flags, method, _, _, _, packed, size, named, extra = _HEADER.unpack_from(data, at)
    start = at + _HEADER.size
    if start + named + extra > len(data) or not named:
        return None
    name = data[start : start + named].decode("utf-8" if flags & _UTF8 else "cp437", errors="replace")
    more = data[start + named : start + named + extra]
    if packed == _FULL or size == _FULL:
        size, packed = _large(more, size, packed)
    return name, flags, method, packed, size, start + named + extra


def _large(extra: bytes, size: int, packed: int) -> tuple[int, int]:
    """The sizes of a Zip64 member from its extra field."""
    at = 0
    while at + 4 <= len(extra):
        kind, length = struct.unpack_from("<HH", extra, at)
        if kind == 1 and length >= 16 and at + 20 <= len(extra):
            whole, less = struct.unpack_from("<QQ", extra, at + 4)
            return int(whole), int(less)
        at += 4 + length
    return size, packed


def _inflated(data: bytes, begin: int, most: int) -> tuple[bytes, int, bool]:
    """What can be unpacked from a place on, the bytes that it takes, and whether it comes to its end."""
    unpacker = zlib.decompressobj(-15)
    pieces: list[bytes] = []
    size, at = 0, begin
    while at < len(data) and not unpacker.eof and size <= most:
        block = data[at : at + _PIECE]
        at += len(block)
        try:
            while (piece := unpacker.decompress(block, most + 1 - size)) or unpacker.unconsumed_tail:
                pieces.append(piece)
                size += len(piece)
                block = unpacker.unconsumed_tail
                if not block or size > most:
                    break
        except zlib.error:
            return b"".join(pieces), at - begin, False
    return b"".join(pieces), at - begin - len(unpacker.unused_data), unpacker.eof
