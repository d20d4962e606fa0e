"""Archives of several files, zip and tar: each member an input of its own, as the files of a folder are; nothing is written."""

from __future__ import annotations

import io
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import IO, Final

from gdiag.errors import InputError
from gdiag.ingesters import cut_zip
from gdiag.ingesters.reading import Input

_MOST: Final = 1 << 28
"""Bytes of a member of an archive without a table of contents."""
_MEMBERS: Final = 10_000
"""Members that are looked at."""
_CUT: Final = "the archive is cut off or damaged here: what stands before is used"
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


@dataclass(frozen=True, slots=True)
class _Entry:
    """A member: its name, what opens it (None where it is no file), and what is to be said of it."""

    name: str
    opened: Callable[[], IO[bytes] | None]
    note: str = ""
    refusal: str = ""
    """Why it cannot be opened, to be put behind its name."""


def _made(given: Input, entries: Iterator[_Entry], make: Limit) -> list[Input]:
    found: list[Input] = []
    hidden = 0
    for count, entry in enumerate(_to_the_damage(given, entries, found)):
        if count >= _MEMBERS:
            found.append(
                Input(given.path, b"", refusal=f"{given.path} holds more than {_MEMBERS} files: the rest is not read")
            )
            break
        place = PurePosixPath(entry.name)
        if any(part.startswith(".") or part == "__MACOSX" for part in place.parts if part != "."):
            hidden += 1
            continue
        found.append(_member(f"{given.path}/{place}", entry, make))
    if found:
        return found
    what = (
        f"holds {'a hidden file' if hidden == 1 else f'{hidden} hidden files'} and no other"
        if hidden
        else "is an archive without files"
    )
    return [Input(given.path, b"", refusal=f"{given.path} {what}")]


def _member(label: str, entry: _Entry, make: Limit) -> Input:
    """A member as an input, which says why where it cannot be read."""
    try:
        if entry.refusal:
            raise InputError(f"{label} {entry.refusal}")
        if (stream := entry.opened()) is None:
            raise InputError(f"{label} is no file")
        with stream:
            made = make(label, stream)
        if is_archive(made.head):
            raise InputError(f"{label} is an archive inside an archive: unpack the outer one, then read the inner one")
        return replace(made, note=entry.note or made.note)
    except InputError as error:
        return Input(label, b"", refusal=str(error))
    except _DAMAGE as error:
        said = "is encrypted" if "encrypted" in str(error) else "is damaged in its archive"
        return Input(label, b"", refusal=f"{label} {said}")


class _NoEndError(Exception):
    """All that is there is whole, and nothing says that it is all there was."""


def _to_the_damage(given: Input, entries: Iterator[_Entry], found: list[Input]) -> Iterator[_Entry]:
    """The entries before the archive is cut off or damaged, of which `found` then tells beside what was read."""
    count = 0
    try:
        for entry in entries:
            count += 1
            yield entry
    except _NoEndError:
        files = f"its {count} files are" if count > 1 else "its file is"
        said = f"{given.path} has no end marker: {files} whole, and whether others followed is not known"
        found.append(Input(given.path, b"", refusal=said))
    except _DAMAGE as error:
        found.append(_damaged(given, error, found))


def _damaged(given: Input, error: Exception, found: list[Input] | None = None) -> Input:
    why = str(error)[:100] or type(error).__name__
    files = f"{len(found)} files before the damage are" if found and len(found) > 1 else "file before the damage is"
    kept = f": the {files} listed, what follows is lost" if found else ""
    return Input(given.path, b"", refusal=f"{given.path} is a damaged archive ({why}){kept}")


def _zip(given: Input) -> Iterator[_Entry]:
    data = given.data()
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
        entries = archive.infolist()
        # The last table of a cut archive may be that of an archive stored in it, which begins behind the first member.
        if entries and data.startswith(cut_zip.MAGIC) and all(entry.header_offset for entry in entries):
            raise zipfile.BadZipFile("its own table of contents is missing")
    except zipfile.BadZipFile:
        if not _right_kind(given, cut_zip.names(data)):
            raise
        yield from _cut_zip(data)
        return
    _right_kind(given, [entry.filename for entry in entries])
    for entry in entries:
        if not entry.is_dir():
            yield _Entry(entry.filename, lambda entry=entry: archive.open(entry))  # type: ignore[misc]


def _right_kind(given: Input, names: list[str]) -> bool:
    """Whether there are names; of what archives are not read, none may be there.

    Raises:
        InputError: the names tell a document or a checkpoint.
    """
    if _SPREADSHEET in names:
        raise InputError(f"{given.path} is a spreadsheet: export its table as CSV")
    for name, what in _WORDS.items():
        if name in names:
            raise InputError(f"{given.path} is {what}, no log")
    if any(name.endswith(("/data.pkl", ".npy")) or name == "data.pkl" for name in names):
        raise InputError(f"{given.path} holds weights or arrays of a checkpoint, no log")
    return bool(names)


def _cut_zip(data: bytes) -> Iterator[_Entry]:
    """Members of an archive whose end is missing, and at last what is lost: nothing where the table of contents has begun.

    Raises:
        _NoEndError: the data end behind a whole member.
        BadZipFile: they end inside one.
    """
    member = None
    for member in cut_zip.members(data, _MOST):
        if member.name.endswith("/"):
            continue
        if member.content or member.whole:
            yield _Entry(member.name, member.stream, "" if member.whole else _CUT)
        else:
            yield _Entry(member.name, lambda: None, refusal=member.refusal or "is cut off in its archive")
    behind = cut_zip.behind(data, member) if member is not None else None
    if behind is None:
        raise zipfile.BadZipFile("its end with the table of contents is missing")
    if not behind:
        raise _NoEndError


def _tar(given: Input) -> Iterator[_Entry]:
    data = given.data()
    archive = tarfile.open(fileobj=io.BytesIO(data), mode="r:")  # noqa: SIM115 (members are read from it)
    for entry in archive:
        if entry.isfile() and entry.offset_data + entry.size > len(data) > entry.offset_data and not entry.sparse:
            yield _Entry(entry.name, lambda entry=entry: io.BytesIO(data[entry.offset_data :]), _CUT)  # type: ignore[misc]
        elif entry.isfile():
            yield _Entry(entry.name, lambda entry=entry: archive.extractfile(entry))  # type: ignore[misc]
        elif not entry.isdir():
            yield _Entry(entry.name, lambda: None)
    # tarfile takes a cut at or inside a header for the end, which is a block of zeros.
    if archive.offset == len(data):
        raise _NoEndError
    if archive.offset < len(data) and any(data[archive.offset : archive.offset + tarfile.BLOCKSIZE]):
        raise tarfile.ReadError("its end is missing")
