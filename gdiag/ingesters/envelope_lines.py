"""Lines of a long file one after the other, and the host of each of many lines."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from gdiag.ingesters.reading import Take

_BLOCK: Final = 1 << 24
"""Bytes read at a time."""


def each(take: Take, size: int, block: int = _BLOCK) -> Iterator[bytes]:
    """The content's lines without their newlines, less the blank ones at its end."""
    rest: list[bytes] = []
    blank = 0
    for at in range(0, size, block):
        *whole, last = take(at, min(at + block, size)).split(b"\n")
        if whole:
            whole[0] = b"".join([*rest, whole[0]])
            rest = []
        rest.append(last)
        for line in whole:
            if not line:
                blank += 1
                continue
            yield from (b"" for _ in range(blank))
            blank = 0
            yield line
    if end := b"".join(rest):
        yield from (b"" for _ in range(blank))
        yield end


@dataclass(slots=True)
class Hosts:
    """The host of each line, kept where it changes and each name once: neighbours mostly have the same."""

    starts: list[int] = field(default_factory=list)
    names: list[str | None] = field(default_factory=list)
    known: dict[str, str] = field(default_factory=dict)

    def add(self, line: int, host: str | None) -> None:
        """The host of a line behind all lines so far; lines between have the last one's."""
        if not self.names or self.names[-1] != host:
            self.starts.append(line)
            self.names.append(None if host is None else self.known.setdefault(host, host))

    def get(self, line: int) -> str | None:
        """The host of a line."""
        at = bisect_right(self.starts, line) - 1
        return self.names[at] if at >= 0 else None
