"""Files that are no logs, told by their first bytes: refused by what they are."""

from __future__ import annotations

import re
from typing import Final

_PICTURE: Final = "is a picture, no log"
_UNPACK: Final = "is an archive of a kind that is not unpacked: unpack it first"
_MAGIC: Final[tuple[tuple[bytes, str], ...]] = (
    (b"\x89PNG\r\n", _PICTURE), (b"\xff\xd8\xff", _PICTURE), (b"GIF8", _PICTURE), (b"%PDF-", "is a PDF document, no log"),
    (b"\x93NUMPY", "is a NumPy array: export it as CSV"), (b"\x89HDF\r\n", "is an HDF5 file: export its table as CSV"),
    (b"\x7fELF", "is a program, no log"), (b"7z\xbc\xaf\x27\x1c", _UNPACK), (b"Rar!\x1a\x07", _UNPACK), (b"\x1f\x9d", _UNPACK),
    (b"\x1f\xa0", _UNPACK), (b"\x5d\x00\x00", _UNPACK), (b"\x89LZO", _UNPACK), (b"\xff\x06\x00\x00sNaPpY", _UNPACK),
    (b"OggS", "is a sound or a film, no log"), (b"\xd0\xcf\x11\xe0", "is a document of an office program: export its table as CSV"),
)  # fmt: skip
_PICKLE: Final = re.compile(rb"\x80[\x02-\x05](?:[\x95\]}(ccX\x8c]|$)")
_PAGE: Final = re.compile(rb"\s*<(?:!doctype html|html\b|\?xml)", re.IGNORECASE)


def named(head: bytes) -> str | None:
    """What a file is that no format knows, as the end of a sentence; None where its first bytes do not tell."""
    for magic, what in _MAGIC:
        if head.startswith(magic):
            return what
    if _PICKLE.match(head):
        return "is a pickled object and is not opened, for unpickling runs what it holds"
    if _PAGE.match(head):
        return "is a web page or an XML document, no log"
    if _is_binary(head[:4096]):
        return "is binary and of no format that gdiag knows"
    return None


def _is_binary(head: bytes) -> bool:
    """Whether much of the beginning is neither text nor white space."""
    odd = sum(byte < 32 and byte not in b"\t\n\r\f\x1b\x08" for byte in head)
    return len(head) >= 16 and odd > 0.1 * len(head)
