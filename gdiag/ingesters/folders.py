"""What lies below a folder: its files, and what is there and cannot be read, with the reason."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

_SHOWN: Final = 4
"""Hidden folders that are named."""


def below(folder: Path) -> tuple[list[Path], list[tuple[str, str]]]:
    """The files below a folder in order of name, and what is no readable file with one sentence each, hidden folders among it.

    Hidden files are left out.

    Links to folders are not followed, so that no ring of them is gone through: one that leads out of the folder is named.
    """
    files: list[Path] = []
    left: list[tuple[str, str]] = []
    root = os.path.realpath(folder)

    def refused(error: OSError) -> None:
        left.append((str(error.filename), f"{error.filename} cannot be read: {error.strerror or error}"))

    for place, inner, names in os.walk(folder, onerror=refused):
        here = Path(place)
        left += _hidden(here, [name for name in sorted(inner) if name.startswith(".")])
        inner[:] = sorted(name for name in inner if not name.startswith("."))
        left += [
            (str(path), f"{path} is a link to a folder elsewhere and is not followed: name that to read it")
            for path in (here / name for name in inner)
            if path.is_symlink() and not Path(os.path.realpath(path)).is_relative_to(root)
        ]
        for path in (here / name for name in sorted(names) if not name.startswith(".")):
            if (why := _why_not(path)) is None:
                files.append(path)
            else:
                left.append((str(path), f"{path} {why}"))
    return sorted(files), left


def _hidden(here: Path, names: list[str]) -> list[tuple[str, str]]:
    """One sentence about the hidden folders of a folder that hold something."""
    full = [name for name in names if _holds_something(here / name)]
    if not full:
        return []
    if len(full) == 1:
        return [(str(here / full[0]), f"{here / full[0]} is a hidden folder and left out: name it to read it")]
    shown = ", ".join(full[:_SHOWN]) + (", …" if len(full) > _SHOWN else "")
    return [(str(here / full[0]), f"{len(full)} hidden folders of {here} are left out ({shown}): name one to read it")]


def _holds_something(folder: Path) -> bool:
    try:
        return next(folder.iterdir(), None) is not None
    except OSError:
        return True


def _why_not(path: Path) -> str | None:
    """Why something is no file that can be read, None where it is one."""
    try:
        kind = path.stat().st_mode
    except OSError as error:
        return f"{'is a link that leads nowhere' if path.is_symlink() else 'cannot be read'}: {error.strerror}"
    return None if stat.S_ISREG(kind) else "is neither a file nor a folder"
