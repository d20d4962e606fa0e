"""Named pipes, read to their end without waiting for a writer that never comes."""

from __future__ import annotations

import os
import select
import time
from pathlib import Path
from typing import Final

from gdiag.errors import InputError

_WAIT: Final = 10.0
"""Seconds for a program to begin to write."""
_LOOK: Final = 0.05
"""Seconds from one look for a writer to the next."""
_BLOCK: Final = 1 << 20


def read(path: Path) -> bytes:
    """All that is written into a pipe until its last writer closes it.

    Raises:
        InputError: nobody writes.
        OSError: it cannot be opened.
    """
    # Opened in this way, a pipe without a writer is there at once and gives nothing; one whose writer is silent blocks.
    pipe = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        first = _first(pipe, path)
        os.set_blocking(pipe, True)
        pieces = [first]
        while piece := os.read(pipe, _BLOCK):
            pieces.append(piece)
        return b"".join(pieces)
    finally:
        os.close(pipe)


def _first(pipe: int, path: Path) -> bytes:
    """The first bytes; while a writer holds the pipe open, they may take their time."""
    until = time.monotonic() + _WAIT
    while True:
        try:
            if piece := os.read(pipe, _BLOCK):
                return piece
        except BlockingIOError:
            select.select([pipe], [], [])
            return os.read(pipe, _BLOCK)
        if time.monotonic() > until:
            raise InputError(f"{path} is a pipe, and no program has written into it within {_WAIT:.0f} s")
        time.sleep(_LOOK)
