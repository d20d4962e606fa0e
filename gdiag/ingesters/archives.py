"""Archives of several files, zip and tar: each member an input of its own, as the files of a folder are; nothing is written."""

from __future__ import annotations

import io
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath
from typing import IO, Final

from gdiag.errors import InputError
from gdiag.ingesters.reading import Input

_MEMBERS: Final = 10_000
"""Members that are looked at."""
_SPREADSHEET: Final = "xl/workbook.xml"
_WORDS: Final = {"word/document.xml": "a text document", "META-INF/MANIFEST.MF": "a Java archive"}
_DAMAGE: Final = (
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    OSError,
    ValueError,
    RuntimeError,
    NotImplementedError,
)

Limit = Callable[[str, IO[bytes]], Input]
"""Makes an input of a member, its name and its stream; raises InputError where it grows too large."""


def is_archive(head: bytes) -> bool:
    """Whether the content is a zip or a tar archive."""
    return head.startswith((b"PK\x03\x04", b"PK\x05\x06")) or head[257:262] == b"ustar"


def members(given: Input, make: Limit) -> list[Input]:
    """The members of an archive as inputs, less hidden ones; one that cannot be read is an input that says why.

    Args:
        given: the archive.
        make: as Limit.
    """
    try:
        entries = _tar(given) if given.head[257:262] == b"ustar" else _zip(given)
        return _made(given, entries, make)
    except InputError as error:
        return [Input(given.path, b"", refusal=str(error))]
    except _DAMAGE as error:
        return [_damaged(given, error)]


Entry = tuple[str, Callable[[], IO[bytes] | None]]


def _made(given: Input, entries: Iterator[Entry], make: Limit) -> list[Input]:
    found: list[Input] = []
    for count, (name, opened) in enumerate(_to_the_damage(given, entries, found)):
        if count >= _MEMBERS:
            found.append(
                Input(given.path, b"", refusal=f"{given.path} holds more than {_MEMBERS} files: the rest is not read")
            )
            break
        place = PurePosixPath(name)
        if any(part.startswith(".") or part == "__MACOSX" for part in place.parts if part != "."):
            continue
        label = f"{given.path}/{place}"
        try:
            if (stream := opened()) is None:
                raise InputError(f"{label} is no file")
            with stream:
                found.append(make(label, stream))
        except InputError as error:
            found.append(Input(label, b"", refusal=str(error)))
        except _DAMAGE as error:
            said = "is encrypted" if "encrypted" in str(error) else "is damaged in its archive"
            found.append(Input(label, b"", refusal=f"{label} {said}"))
    return found or [Input(given.path, b"", refusal=f"{given.path} is an archive without files")]


def _to_the_damage(given: Input, entries: Iterator[Entry], found: list[Input]) -> Iterator[Entry]:
    """The entries before the archive is cut off or damaged, of which `found` then tells beside what was read."""
    try:
        yield from entries
    except _DAMAGE as error:
        found.append(_damaged(given, error))


def _damaged(given: Input, error: Exception) -> Input:
    why = str(error)[:100] or type(error).__name__
    return Input(given.path, b"", refusal=f"{given.path} is a damaged archive ({why})")


def _zip(given: Input) -> Iterator[Entry]:
    archive = zipfile.ZipFile(io.BytesIO(given.data()))
    names = [entry.filename for entry in archive.infolist()]
    if _SPREADSHEET in names:
        raise InputError(f"{given.path} is a spreadsheet: export its table as CSV")
    for name, what in _WORDS.items():
        if name in names:
            raise InputError(f"{given.path} is {what}, no log")
    if any(name.endswith(("/data.pkl", ".npy")) or name == "data.pkl" for name in names):
        raise InputError(f"{given.path} holds weights or arrays of a checkpoint, no log")
    for entry in archive.infolist():
        if not entry.is_dir():
            yield entry.filename, lambda entry=entry: archive.open(entry)  # type: ignore[misc]


def _tar(given: Input) -> Iterator[Entry]:
    archive = tarfile.open(fileobj=io.BytesIO(given.data()), mode="r:")  # noqa: SIM115 (members are read from it)
    for entry in archive:
        if entry.isfile():
            yield entry.name, lambda entry=entry: archive.extractfile(entry)  # type: ignore[misc]
        elif not entry.isdir():
            yield entry.name, lambda: None
