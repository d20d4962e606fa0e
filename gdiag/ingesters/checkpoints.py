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
_MOST: Final = 100_000
"""Entries of a folder that are looked at."""


def beside(inputs: Iterable[Input]) -> list[Reading]:
    """Per folder that holds one of the inputs its checkpoints, as `events` at their step with their time of writing."""
    folders = dict.fromkeys(given.file.parent for given in inputs if given.file is not None)
    places = [place for folder in folders for place in (folder, *(folder / name for name in _INSIDE))]
    return [_reading(place, found) for place in places if (found := _checkpoints(place))]


def _checkpoints(folder: Path) -> list[tuple[int, float, str]]:
    found: list[tuple[int, float, str]] = []
    try:
        for count, entry in enumerate(folder.iterdir()):
            match = _NAME.match(entry.name)
            if match and len(match[1]) < 16 and (entry.is_dir() or entry.suffix == ".ckpt"):
                found.append((int(match[1]), entry.stat().st_mtime, entry.name))
            if count > _MOST:
                break
    except OSError:
        return []
    return sorted(found)


def _reading(place: Path, found: list[tuple[int, float, str]]) -> Reading:
    home = place.parent if place.name in _INSIDE else place
    events = pl.DataFrame(found, schema={"step": pl.Int64, "time": pl.Float64, "text": pl.String}, orient="row").select(
        "time", "step", pl.lit("checkpoint").alias("kind"), "text"
    )
    inner = "" if place == home else f"{place.name}: "
    notes = (f"{inner}{len(found)} checkpoints from step {found[0][0]:,} to {found[-1][0]:,}",)
    return Reading(Source(str(home / f"{found[0][2]}…"), FORMAT, len(found), notes=notes), events=events)
