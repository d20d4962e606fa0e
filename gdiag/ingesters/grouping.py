"""Which files belong to one run, and what each of them gives."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Final

import polars as pl

from gdiag.ingesters import fraction_steps, joining
from gdiag.ingesters.metric_files import COMMON, home, joined_columns, without_steps
from gdiag.ingesters.reading import Reading
from gdiag.ingesters.same_losses import curves
from gdiag.ingesters.twins import Shelf
from gdiag.ingesters.values import whole

_RANK: Final = re.compile(r"(?:rank|worker|proc|process|gpu)[-_.]?(\d+)", re.IGNORECASE)
_DIGITS: Final = re.compile(r"\d+")
_GAP: Final = 10
"""A run goes on when the next file starts within so many logging intervals."""


@dataclass(frozen=True, slots=True)
class Group:
    """The files of one run."""

    members: tuple[int, ...]
    """Indices of readings, the one with most of the steps first."""


def group(readings: list[Reading]) -> list[Group]:
    """Runs among the readings; readings of files that repeat another's steps keep only what that one lacks."""
    main = [i for i, r in enumerate(readings) if r.steps is not None and r.steps.height]
    if len(main) < 2:
        return [Group((*main, *(i for i in range(len(readings)) if i not in main)))] if readings else []
    runs = _runs(readings, main)
    homes = [home(readings[run[0]].source.path) for run in runs]
    nearest: dict[str, int] = {}
    for index in sorted(set(range(len(readings))) - set(main)):
        own = home(readings[index].source.path)
        if own not in nearest:
            nearest[own] = homes.index(own) if own in homes else _nearest(homes, own)
        runs[nearest[own]].append(index)
    return [Group(tuple(run)) for run in runs]


def _runs(readings: list[Reading], main: list[int]) -> list[list[int]]:
    """The runs, those whose files count epochs in fractions with their steps in one unit."""
    byhome: dict[str, list[int]] = {}
    for i in main:
        byhome.setdefault(home(readings[i].source.path), []).append(i)
    trial = list(readings)
    shared = [fraction_steps.in_one_unit(trial, near) for near in byhome.values()]
    if not any(shared):
        return _told_by_steps(readings, main)
    return sorted(own for run in _told_by_steps(trial, main) for own in _in_own_unit(readings, run))


def _in_own_unit(readings: list[Reading], members: list[int]) -> list[list[int]]:
    """The runs of some files, which share a unit of steps only where they are one run in it."""
    trial = list(readings)
    fraction_steps.in_one_unit(trial, members)
    runs = _told_by_steps(trial, members)
    if len(runs) == 1:
        readings[:] = trial
        return runs
    return [own for run in runs for own in _in_own_unit(readings, run)]


def _told_by_steps(readings: list[Reading], main: list[int]) -> list[list[int]]:
    """The runs of files whose steps are comparable."""
    runs = _rank_files(readings, main)
    runs = _wandb_folders(readings, runs)
    runs = joined_columns(readings, runs)
    runs = _event_files(readings, runs)
    runs = _twins(readings, runs)
    return _restarts(readings, runs)


def _rank_files(readings: list[Reading], main: list[int]) -> list[list[int]]:
    """Files whose names differ in the rank only are one run; the rank is the name's where the rows say none."""
    runs: dict[str, list[int]] = {}
    for i in main:
        path = readings[i].source.path
        name = PurePath(path).name
        runs.setdefault(f"{PurePath(path).parent}/{_RANK.sub('rank#', name)}", []).append(i)
    for members in runs.values():
        if len(members) < 2:
            continue
        for i in members:
            steps = readings[i].steps
            found = _RANK.search(PurePath(readings[i].source.path).name)
            if steps is not None and found is not None:
                rank = pl.col("rank").fill_null(whole(found.group(1), bits=32)).cast(pl.Int32)
                layers = readings[i].layers
                readings[i] = replace(
                    readings[i],
                    steps=steps.with_columns(rank),
                    layers=None if layers is None else layers.with_columns(rank),
                )
    return list(runs.values())


def _wandb_folders(readings: list[Reading], runs: list[list[int]]) -> list[list[int]]:
    """What lies in `files` beside a binary wandb file is of its run: the console counts the same steps in its own way."""
    folders = [PurePath(readings[run[0]].source.path).parent for run in runs]
    owners: dict[PurePath, list[int]] = {}
    for folder, run in zip(folders, runs, strict=True):
        # The folder of a run ends with its id, as the name of its file does, whatever else was put into it.
        own = folder.name.endswith(PurePath(readings[run[0]].source.path).stem.rpartition("-")[2])
        if _is_wandb(readings[run[0]]) and (own or folder / "files" not in owners):
            owners[folder / "files"] = run
    kept: list[list[int]] = []
    for folder, run in zip(folders, runs, strict=True):
        if folder not in owners:
            kept.append(run)
            continue
        for i in run:
            readings[i] = without_steps(readings[i], readings[owners[folder][0]].source.path)
        owners[folder].extend(run)
    return kept


def _is_wandb(reading: Reading) -> bool:
    return reading.source.format == "wandb"


def _event_files(readings: list[Reading], runs: list[list[int]]) -> list[list[int]]:
    """TensorBoard files of one folder follow each other in time."""
    folders: dict[str, list[list[int]]] = {}
    for run in runs:
        if readings[run[0]].source.format == "tfevents":
            folders.setdefault(str(PurePath(readings[run[0]].source.path).parent), []).append(run)
    for found in folders.values():
        if len(found) > 1:
            members = sorted((i for run in found for i in run), key=lambda i: _start(readings[i]))
            runs = [run for run in runs if run not in found] + [members]
    return runs


def _twins(readings: list[Reading], runs: list[list[int]]) -> list[list[int]]:
    """Two files of one home with the same losses on the same steps tell of one run: the fuller one is used."""
    runs = sorted(runs, key=lambda run: (-_weight(readings, run), run[0]))
    kept: list[list[int]] = []
    homes: dict[str, tuple[Shelf, list[list[int]]]] = {}
    for run in runs:
        shelf, near = homes.setdefault(home(readings[run[0]].source.path), (Shelf(), []))
        losses = curves(readings[run[0]].steps)
        alike = shelf.twin(losses)
        if alike is None:
            kept.append(run)
            near.append(run)
            shelf.add(losses)
            continue
        twin = near[alike]
        for i in run:
            steps, own = readings[i].steps, readings[twin[0]].steps
            if steps is not None and own is not None:
                merged, lost = joining.completed(own, steps)
                said = (
                    (f"{lost} rows at steps that {readings[twin[0]].source.path} lacks are not used",) if lost else ()
                )
                readings[twin[0]] = replace(readings[twin[0]], steps=merged)
                source = readings[i].source
                readings[i] = replace(readings[i], source=replace(source, notes=(*source.notes, *said)))
            readings[i] = without_steps(readings[i], readings[twin[0]].source.path)
        twin.extend(run)
    return sorted(kept)


def _restarts(readings: list[Reading], runs: list[list[int]]) -> list[list[int]]:
    """A file that starts where another of the same name but for its numbers ends goes on with that run."""
    ranges = {run[0]: _range(readings[run[0]]) for run in runs}
    runs = sorted(runs, key=lambda run: (ranges[run[0]][0], run[0]))
    kept: list[list[int]] = []
    alike: dict[str, list[tuple[list[int], tuple[int, int, int]]]] = {}
    for run in runs:
        named = alike.setdefault(_but_for_numbers(readings[run[0]]), [])
        own = ranges[run[0]]
        at = next((n for n in reversed(range(len(named))) if _continues(named[n][1], own)), None)
        if at is None:
            kept.append(run)
            named.append((run, own))
        else:
            named[at][0].extend(run)
            named[at] = named[at][0], own
    return sorted(kept)


def _but_for_numbers(reading: Reading) -> str:
    """A file's place without numbers; a wandb file is called by its run's id, in which they are no count."""
    place = PurePath(reading.source.path)
    name = place.name if _is_wandb(reading) else _DIGITS.sub("", place.name)
    return f"{_DIGITS.sub('', str(place.parent))}/{name}"


def _continues(a: tuple[int, int, int], b: tuple[int, int, int]) -> bool:
    (first, last, interval), (start, end, _) = a, b
    return first < start <= last + _GAP * interval and end > last and start > first + interval


def _nearest(homes: Sequence[str], own: str) -> int:
    """Which of the runs' homes is closest to a file's home: the one with most of it in common, the first of several."""

    def shared(n: int) -> int:
        other = homes[n]
        return min(len(own), len(other)) if own.startswith(other) or other.startswith(own) else -1

    return max(range(len(homes)), key=shared)


def _weight(readings: Sequence[Reading], run: list[int]) -> int:
    steps = readings[run[0]].steps
    return 0 if steps is None else sum(int(steps[c].count()) for c in steps.columns if c not in COMMON)


def _range(reading: Reading) -> tuple[int, int, int]:
    """First and last step and the logging interval."""
    if reading.steps is None or not reading.steps.height:
        return 0, -1, 1
    first, last, count = reading.steps.select(
        pl.col("step").min().alias("first"), pl.col("step").max().alias("last"), pl.col("step").n_unique()
    ).row(0)
    if first is None:
        return 0, -1, 1
    return first, last, max((last - first) // max(count - 1, 1), 1)


def _start(reading: Reading) -> float:
    if reading.steps is None or "time" not in reading.steps.columns:
        return 0.0
    first = reading.steps["time"].min()
    return float(first) if isinstance(first, int | float) else 0.0
