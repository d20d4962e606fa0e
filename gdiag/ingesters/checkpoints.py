"""Checkpoint folders that lie beside the logs: what actions can name as the last good state."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import polars as pl

from gdiag.ingesters.reading import Input, Reading
from gdiag.model import Source

FORMAT: Final = "checkpoint-folders"
_NAME: Final = re.compile(
    r"^(?:checkpoint|ckpt|iter|global_?step|step|epoch=\d+-step)[-_=]?0*(\d+)(?:-unsharded|\.ckpt)?$", re.IGNORECASE
)
_INSIDE: Final = ("checkpoints", "checkpoint", "ckpts", "ckpt", "weights")
_Checkpoint = tuple[int, float | None, str]
"""Step, time of writing [s, Unix], name."""
_MOST: Final = 100_000
"""Entries of a folder that are looked at."""


def beside(inputs: Iterable[Input]) -> list[Reading]:
    """Per folder that holds one of the inputs its checkpoints, as `events` at their step with their time of writing.

    Of a store only the files below the given address are known, by their names and without a time.
    """
    inputs = list(inputs)
    folders = dict.fromkeys(given.file.parent for given in inputs if given.file is not None)
    places = [place for folder in folders for place in (folder, *(folder / name for name in _INSIDE))]
    found = {str(place): there for place in places if (there := _checkpoints(place))}
    return [_reading(place, there) for place, there in {**found, **_remote(inputs)}.items()]


def _checkpoints(folder: Path) -> list[_Checkpoint]:
    found: list[_Checkpoint] = []
    try:
        for count, entry in enumerate(folder.iterdir()):
            step = _step(entry.name)
            if step is not None and (entry.is_dir() or entry.suffix == ".ckpt"):
                found.append((step, entry.stat().st_mtime, entry.name))
            if count > _MOST:
                break
    except OSError:
        return []
    return sorted(found)


def _remote(inputs: Iterable[Input]) -> dict[str, list[_Checkpoint]]:
    """Folder of a store → the checkpoints in it: what is fetched or left there lies below their names."""
    found: dict[str, set[tuple[int, str]]] = {}
    for given in inputs:
        scheme, _, rest = given.path.partition("://")
        parts = rest.split("/")
        for at, name in enumerate(parts):
            step = _step(name)
            if step is not None and (at + 1 < len(parts) or name.endswith(".ckpt")):
                found.setdefault(f"{scheme}://{'/'.join(parts[:at])}", set()).add((step, name))
                break
    return {place: [(step, None, name) for step, name in sorted(there)] for place, there in found.items()}


def _step(name: str) -> int | None:
    match = _NAME.match(name)
    return int(match[1]) if match and len(match[1]) < 16 else None


def _reading(place: str, found: list[_Checkpoint]) -> Reading:
    home, _, last = place.rpartition("/")
    events = pl.DataFrame(found, schema={"step": pl.Int64, "time": pl.Float64, "text": pl.String}, orient="row").select(
        "time", "step", pl.lit("checkpoint").alias("kind"), "text"
    )
    home, inner = (home, f"{last}: ") if last in _INSIDE else (place, "")
    notes = (f"{inner}{len(found)} checkpoints from step {found[0][0]:,} to {found[-1][0]:,}",)
    shown = f"{found[0][2]}…" if home in ("", ".") else f"{home}/{found[0][2]}…"
    return Reading(Source(shown, FORMAT, len(found), notes=notes), events=events)
