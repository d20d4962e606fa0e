"""Paths, folders, globs, addresses and standard input → inputs, decompressed and decoded."""

from __future__ import annotations

import bz2
import glob
import io
import lzma
import os
import stat
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, BinaryIO, Final, Protocol

from gdiag.errors import InputError
from gdiag.ingesters import archives, folders, pipes, remote
from gdiag.ingesters.reading import Input, without_bom

HEAD: Final = 65536
RATIO: Final = 400
"""Logs shrink 5 to 50 times; content that grows more than this while it is unpacked is no log."""
FLOOR: Final = 2**28
"""Content up to this size is unpacked whatever the ratio, B."""
CEILING: Final = 2**34
"""Content above this size is not unpacked into memory, B."""
_BLOCK: Final = 1 << 14


def gather(paths: Sequence[str | Path]) -> list[Input]:
    """Every file below the given paths, in the order given, folders in order of name.

    Raises:
        InputError: a path does not exist, a glob fits nothing, or an address cannot be reached.
    """
    found: list[Input] = []
    seen: dict[str, str] = {}
    for given in paths:
        if str(given) == "-":
            found += _or_members(from_bytes("-", _standard_input()))
            continue
        if remote.scheme(str(given)) is not None:
            found += _fetched(str(given), {known.path for known in found})
            continue
        left: list[tuple[str, str]] = []
        try:
            paths_there = expand(str(given), left)
        except OSError as error:
            raise InputError(f"{given} cannot be read: {error.strerror or error}") from error
        for path in paths_there:
            # realpath, for resolve() raises where links go round in a ring.
            place = os.path.realpath(path)
            if place not in seen:
                seen[place] = str(path)
                found += _opened(path)
            elif path.is_symlink() and str(path) != seen[place]:
                found.append(Input(str(path), b"", refusal=f"{path} is a link to {seen[place]}, which is read"))
        found += [Input(path, b"", refusal=why) for path, why in left]
    if not found:
        raise InputError(f"no files in {', '.join(map(str, paths))}")
    return found


def _fetched(address: str, known: set[str]) -> list[Input]:
    """The files at an address, less those already `known`; what cannot be fetched is an input that says why."""
    inputs: list[Input] = []
    for name, content in remote.fetch(address, CEILING):
        if name in known:
            continue
        try:
            inputs += (
                _or_members(from_bytes(name, content))
                if isinstance(content, bytes)
                else [Input(name, b"", refusal=content)]
            )
        except InputError as error:
            inputs.append(Input(name, b"", refusal=str(error)))
    return inputs


def _standard_input() -> bytes:
    if sys.stdin is None:
        raise InputError("there is no standard input to read")
    return sys.stdin.buffer.read()


def _opened(path: Path) -> list[Input]:
    """One file of several, or the files in an archive: what cannot be opened is an input that says why."""
    try:
        opened = open_file(path)
    except InputError as error:
        return [Input(path=str(path), head=b"", refusal=str(error))]
    return _or_members(opened)


def _or_members(opened: Input) -> list[Input]:
    if not archives.is_archive(opened.head):
        return [opened]
    room = most = _expansion(len(opened.data()))

    def member(name: str, stream: IO[bytes]) -> Input:
        """A file in the archive; InputError where it passes what is unpacked into memory, alone or with those before it."""
        nonlocal room
        content = stream.read(min(FLOOR, room) + 1)
        if len(content) > FLOOR:
            raise InputError(f"{name} is larger than {FLOOR / 2**20:.0f} MiB: unpack the archive, then read the file")
        if len(content) > room:
            raise InputError(f"{name} is not read: its archive grows past {most / 2**20:.0f} MiB when unpacked")
        room -= len(content)
        return from_bytes(name, content)

    return archives.members(opened, member)


def _expansion(packed: int) -> int:
    """Bytes that so many may become when they are unpacked."""
    return min(max(FLOOR, RATIO * packed), CEILING)


def expand(given: str, left: list[tuple[str, str]] | None = None) -> list[Path]:
    """The files of this machine that a path, a folder or a glob stands for, hidden ones below a folder left out.

    Args:
        given: the path.
        left: takes what lies below a folder and is no readable file, with a sentence each.

    Raises:
        InputError: there is none.
    """
    if not given.strip():
        raise InputError("an empty path was given; name a file, a folder or a glob")
    path = Path(given)
    if path.is_dir():
        files, others = folders.below(path)
        if left is not None:
            left += others
        return files
    if path.exists():
        return [path]
    matches = sorted(Path(p) for p in glob.glob(given, recursive=True))  # noqa: PTH207 (Path.glob takes no absolute pattern)
    files = [f for m in matches for f in (expand(str(m), left) if m.is_dir() else [m])]
    if not files:
        raise InputError(f"{given} does not exist" if not glob.has_magic(given) else f"no file fits {given}")
    return files


def open_file(path: Path) -> Input:
    """One file; only its head is read unless it is compressed or UTF-16.

    Raises:
        InputError: unreadable, or unpacking it passes the expansion limit.
    """
    try:
        kind = path.stat().st_mode
        if stat.S_ISFIFO(kind):
            # What a pipe gave once it does not give again: `<(zcat log.gz)` is read whole, as standard input is.
            return from_bytes(str(path), pipes.read(path))
        if not stat.S_ISREG(kind):
            raise InputError(f"{path} is neither a file nor a pipe")
        with path.open("rb") as file:
            head = file.read(HEAD)
            if (opener := _unpacker(head)) is not None:
                file.seek(0)
                content, note = _unpack(opener, file, path)
                return replace(from_bytes(str(path), content, file=path), note=note)
            if (encoding := _utf16(head)) is not None:
                return from_bytes(str(path), decode(head + file.read(), encoding), file=path)
            if b"\r" in head and b"\n" not in head:
                return from_bytes(str(path), head + file.read(), file=path)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from error
    return Input(path=str(path), head=without_bom(head), file=path)


def from_bytes(name: str, content: bytes, file: Path | None = None) -> Input:
    """An input whose whole content is in memory, unpacked and decoded.

    Raises:
        InputError: unpacking it passes the expansion limit.
    """
    note = ""
    if (opener := _unpacker(content[:16])) is not None:
        content, note = _unpack(opener, io.BytesIO(content), Path(name))
    if (encoding := _utf16(content[:4])) is not None:
        content = decode(content, encoding)
    content = _with_newlines(without_bom(content))
    return Input(path=name, head=content[:HEAD], file=file, content=content, note=note)


def _with_newlines(content: bytes) -> bytes:
    """Text whose lines end by carriage returns alone, with newlines; anything else as it is."""
    return content if b"\n" in content or b"\0" in content else content.replace(b"\r", b"\n")


def decode(content: bytes, encoding: str) -> bytes:
    """UTF-16 or UTF-32 as UTF-8, damaged pieces replaced."""
    return content.decode(encoding, errors="replace").encode("utf-8", errors="replace")


def _utf16(head: bytes) -> str | None:
    if head.startswith((b"\xff\xfe\x00\x00", b"\x00\x00\xfe\xff")):
        return "utf-32"
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    sample = head[:512]
    if len(sample) >= 8 and sample[1::2].count(0) > 0.8 * len(sample[1::2]) and sample[::2].count(0) == 0:
        return "utf-16-le"
    if len(sample) >= 8 and sample[::2].count(0) > 0.8 * len(sample[::2]) and sample[1::2].count(0) == 0:
        return "utf-16-be"
    return None


def _unpacker(head: bytes) -> Callable[[BinaryIO], Iterator[bytes]] | None:
    if head.startswith(b"\x1f\x8b"):
        return lambda file: _inflate(file, lambda: zlib.decompressobj(31))
    if head.startswith(b"BZh"):
        return lambda file: _inflate(file, bz2.BZ2Decompressor)
    if head.startswith(b"\xfd7zXZ\x00"):
        return lambda file: _inflate(file, lzma.LZMADecompressor)
    if head.startswith(b"\x28\xb5\x2f\xfd"):
        return lambda file: _by_arrow(file, "zstd")
    if head.startswith(b"\x04\x22\x4d\x18"):
        return lambda file: _by_arrow(file, "lz4")
    return None


class _Decoder(Protocol):
    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, /) -> bytes: ...


def _inflate(file: BinaryIO, fresh: Callable[[], _Decoder]) -> Iterator[bytes]:
    """Small blocks, so that a cut archive loses nothing before the cut; several archives in a row are one."""
    decoder = fresh()
    while block := file.read(_BLOCK):
        while block:
            if decoder.eof:
                decoder = fresh()
            yield decoder.decompress(block)
            block = decoder.unused_data
    if not decoder.eof:
        raise EOFError


def _by_arrow(file: BinaryIO, kind: str) -> Iterator[bytes]:
    import pyarrow as pa

    stream = pa.CompressedInputStream(file, kind)
    while block := stream.read(_BLOCK):
        yield block


def _unpack(unpacker: Callable[[BinaryIO], Iterator[bytes]], file: BinaryIO, path: Path) -> tuple[bytes, str]:
    """The content and a note: a cut or damaged archive gives what stands before the damage.

    Raises:
        InputError: nothing can be unpacked, or more than the expansion limit.
    """
    packed = file.seek(0, io.SEEK_END)
    file.seek(0)
    limit = _expansion(packed)
    pieces: list[bytes] = []
    size = 0
    note = ""
    try:
        for piece in unpacker(file):
            pieces.append(piece)
            size += len(piece)
            if size > limit:
                raise InputError(f"{path} grows past {limit / 2**20:.0f} MiB when unpacked, which no log does")
    except (EOFError, OSError, lzma.LZMAError, zlib.error, ValueError) as error:
        if not size:
            raise InputError(f"{path} is a damaged archive") from error
        note = "the archive is cut off or damaged: what stands before is used"
    return b"".join(pieces), note
