"""What an ingester is given and what it returns: the types shared by every format module."""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

import polars as pl

from gdiag.model import Exit, Source, Value
from gdiag.schema import LayerColumn

Take = Callable[[int, int], bytes]
"""The bytes from one offset up to another."""
Held = bytes | mmap.mmap
"""A file's bytes in memory."""


@dataclass(frozen=True, slots=True)
class Options:
    """What the user says about the input."""

    columns: dict[str, str] = field(default_factory=dict)
    """Canonical name → name in the file (`--map loss=my/metric`); overrides the alias table."""
    tz: str | None = None
    """IANA zone or ±HH:MM of clocks printed without one."""


@dataclass(frozen=True, slots=True)
class Input:
    """One file, decompressed and decoded on demand: formats never open files themselves."""

    path: str
    """As shown in reports; '-' for standard input."""
    head: bytes
    """The first 64 KiB after decompression, as UTF-8 without BOM for text."""
    file: Path | None = None
    """The file on disk, for formats that consist of several files or want a memory map."""
    content: bytes | None = None
    """The whole decompressed content when it is already in memory."""
    refusal: str = ""
    """Why the file could not be opened or unpacked, in one sentence; empty where it could."""
    note: str = ""
    """What the report has to say of the unpacking, in one sentence; empty where all went well."""

    def data(self) -> bytes:
        """The whole content, decompressed; text as UTF-8 without BOM."""
        if self.content is not None:
            return self.content
        if self.file is None:
            return self.head
        return without_bom(self.file.read_bytes())

    def held(self) -> Held:
        """As data; a large file in pages of megabytes, for to be given small ones takes longer than to fill them."""
        if self.content is not None or self.file is None or not hasattr(mmap, "MADV_HUGEPAGE"):
            return self.data()
        with self.file.open("rb", buffering=0) as file:
            size = os.fstat(file.fileno()).st_size
            if size < _LARGE:
                return without_bom(file.read())
            memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            memory.madvise(mmap.MADV_HUGEPAGE)
            room, at = memoryview(memory), 0
            while got := file.readinto(room[at:]):
                at += got
        if at < size:
            return without_bom(memory[:at])
        return without_bom(memory[:]) if memory[: len(_BOM)] == _BOM else memory

    def opened(self) -> tuple[Take, int]:
        """A function that gives the content between two offsets, and the content's length; a file is read in parts."""
        if self.content is None and (file := self.file) is not None:
            with file.open("rb") as start:
                skip = len(_BOM) if start.read(len(_BOM)) == _BOM else 0

            def take(begin: int, end: int) -> bytes:
                with file.open("rb") as opened:
                    opened.seek(skip + begin)
                    return opened.read(end - begin)

            return take, file.stat().st_size - skip
        data = self.data()
        return lambda begin, end: data[begin:end], len(data)

    def sample(self) -> bytes:
        """The head, and where the content is longer pieces from all through it and its end; cut anywhere."""
        if len(self.head) < _PIECE and self.content is None:
            return self.head
        if self.content is not None:
            size = len(self.content)
            return self.head + b"".join(b"\n" + self.content[at : at + _PIECE] for at in _places(size, len(self.head)))
        if self.file is None:
            return self.head
        pieces = [self.head]
        with self.file.open("rb") as file:
            for at in _places(self.file.stat().st_size, len(self.head)):
                file.seek(at)
                pieces.append(file.read(_PIECE))
        return b"\n".join(pieces)


_PIECE: Final = 1 << 14
_LARGE: Final = 1 << 22
_BOM: Final = b"\xef\xbb\xbf"


def _places(size: int, start: int) -> list[int]:
    """Where to look in `size` bytes of which `start` are known: seven places, the last one the end."""
    if size <= start:
        return []
    last = max(start, size - _PIECE)
    return sorted({start + (last - start) * i // 6 for i in range(7)})


def without_bom(content: bytes) -> bytes:
    """UTF-8 text without its byte order mark."""
    return content.removeprefix(_BOM)


@dataclass(frozen=True, slots=True)
class Reading:
    """What one file gave. Tables hold the columns of schema.TABLES that the file had, less `source`.

    `run` in a table is null for the file's only run, else the name of the run inside the file.
    """

    source: Source
    steps: pl.DataFrame | None = None
    layers: pl.DataFrame | None = None
    layer_columns: tuple[LayerColumn, ...] = ()
    gpus: pl.DataFrame | None = None
    events: pl.DataFrame | None = None
    collectives: pl.DataFrame | None = None
    devices: pl.DataFrame | None = None
    facts: pl.DataFrame | None = None
    ports: pl.DataFrame | None = None
    operations: pl.DataFrame | None = None
    baselines: pl.DataFrame | None = None
    rejects: pl.DataFrame | None = None
    config: dict[str, Value] = field(default_factory=dict)
    exit: Exit = "unknown"
    exits: dict[str, Exit] = field(default_factory=dict)
    """The same by run, where runs inside the file end each in its own way."""
    run_name: str | None = None


class Ingester(Protocol):
    """A format module: listed by hand in ingesters.formats."""

    FORMAT: str
    """The format's name in reports: jsonl, csv, megatron, nvidia-smi-csv, …"""

    def recognise(self, given: Input) -> float:
        """0 = not this format … 1 = certainly; decided by content, never by the file's name alone."""

    def read(self, given: Input, options: Options) -> Reading:
        """Everything readable in the file; damaged pieces as rejects.

        Raises:
            InputError: the file is of a kind that holds no series, with the sentence that says what it is.
        """
