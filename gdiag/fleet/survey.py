"""Telemetry of whole clusters: the partials of measures.throttling over many files, each file read once and let go.

One process per core counts one file at a time, so that memory holds the counts and not the rows: a day of 1,000 GPUs at
one sample every 10 s is 8.6 million rows, but only 0.7 million bins of two minutes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Final

import numpy as np
import polars as pl

from gdiag import ingesters
from gdiag.errors import InputError
from gdiag.ingesters import remote
from gdiag.ingesters.files import expand
from gdiag.ingesters.reading import Options
from gdiag.measures import throttling
from gdiag.measures.run import RunView
from gdiag.measures.step_time import step_times
from gdiag.measures.telemetry import Telemetry, of_partial, step_stamps
from gdiag.measures.throttling import Partial
from gdiag.model import Run, Source
from gdiag.schema import Records, empty

LARGE: Final = 200 << 20
"""From this many bytes of telemetry on, files are counted one by one."""
PACKED: Final = 10
"""How much a compressed log grows when it is read."""
BINS: Final = 720
"""Bins in the stretch of the first file: two minutes for a day."""


@dataclass(frozen=True, slots=True)
class Counted:
    """One file's part."""

    partial: Partial | None
    source: Source
    events: pl.DataFrame
    columns: frozenset[str]
    zone_known: bool
    span: float
    """Seconds between the first and the last sample."""
    interval: float


def is_large(paths: Sequence[str]) -> bool:
    """Whether the files are too large to be kept as rows; what does not lie on this machine is not counted.

    Raises:
        InputError: a path does not exist, or a glob fits nothing.
    """
    if any(path == "-" or remote.scheme(path) for path in paths):
        return False
    total = 0
    for path in _files(paths):
        packed = path.suffix in (".gz", ".zst", ".bz2", ".xz")
        total += path.stat().st_size * (PACKED if packed else 1)
    return total >= LARGE


def survey(
    paths: Sequence[str], run: Sequence[str] = (), *, tz: str | None = None, workers: int | None = None
) -> tuple[Records, Telemetry]:
    """Records without rows of `gpus`, and the telemetry counted from all files, on the clock of the run's steps if given.

    Raises:
        InputError: a path does not exist, or no file holds telemetry of GPUs.
    """
    files = [str(path) for path in _files(paths)]
    parts: list[Counted] = []
    width = 60.0
    while files and not any(p.partial for p in parts):  # the first file with telemetry says how wide a bin must be
        found = count(files[0], tz, width)
        if found.partial is not None:
            width = max(1.0, found.interval, found.span / BINS)
            found = count(files[0], tz, width)
        parts.append(found)
        files = files[1:]
    parts += _map(files, tz, width, workers or min(len(files) or 1, os.cpu_count() or 1))
    counted = [p.partial for p in parts if p.partial is not None]
    if not counted:
        raise InputError(f"{paths[0]} holds no GPU telemetry")
    whole = throttling.merge([_numbered(p, i) for i, p in enumerate(counted)])
    steps = ingesters.load(list(run), Options(tz=tz)) if run else None
    records = _records(parts, steps)
    view = RunView(records.runs[0], records)
    stamps = view.series("time").value if steps is not None else np.empty(0)
    times = step_times(view.paths[0].frame) if steps is not None else None
    elapsed = step_stamps(times) if times is not None and not times.rate and len(stamps) < 2 else None
    with_gpus = [p for p in parts if p.partial is not None]
    return records, of_partial(
        whole, [p.source.columns for p in with_gpus], stamps, elapsed, zone_known=all(p.zone_known for p in with_gpus),
        logged=frozenset().union(*(p.columns for p in with_gpus)),
    )  # fmt: skip


def count(path: str, tz: str | None, width: float) -> Counted:
    """One file's counts; a file that holds no telemetry counts for nothing and says why."""
    try:
        found = ingesters.load([path], Options(tz=tz))
    except InputError as error:
        return Counted(
            None, Source(path, "unknown", 0, notes=(str(error),)), empty("events"), frozenset(), True, 0.0, 0.0
        )
    gpus = found.gpus
    if not gpus.height:
        return Counted(None, found.sources[0], found.events, frozenset(), True, 0.0, 0.0)
    times = gpus["time"].drop_nulls()
    span = float(times.max()) - float(times.min()) if times.len() else 0.0  # type: ignore[arg-type]
    return Counted(
        throttling.partial(gpus, width), found.sources[0], found.events, frozenset(n for n in gpus.columns if gpus[n].count()),
        bool(gpus["zone_known"].fill_null(True).all()), span, throttling.width_for(gpus),
    )  # fmt: skip


def _map(files: Sequence[str], tz: str | None, width: float, workers: int) -> Iterator[Counted]:
    if workers <= 1 or len(files) < 2:
        for path in files:
            yield count(path, tz, width)
        return
    # NOTE: fork would copy the threads of polars in an undefined state; spawned workers use one thread each.
    os.environ.setdefault("POLARS_MAX_THREADS", "1")
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        yield from pool.map(_count, ((path, tz, width) for path in files), chunksize=1)


def _count(job: tuple[str, str | None, float]) -> Counted:
    return count(*job)


def _numbered(part: Partial, source: int) -> Partial:
    return replace(part, units=part.units.with_columns(pl.lit(source, pl.Int32).alias("source")))


def _records(parts: Sequence[Counted], steps: Records | None) -> Records:
    """Sources and events of all files, steps of the run, no rows of `gpus`."""
    with_gpus = [p for p in parts if p.partial is not None]
    others = [p for p in parts if p.partial is None]
    ordered = [*with_gpus, *others]
    events = [
        p.events.with_columns(pl.lit(i, pl.Int32).alias("source"), pl.lit("run").alias("run"))
        for i, p in enumerate(ordered)
        if p.events.height
    ]
    sources = tuple(p.source for p in ordered)
    base = len(sources)
    if steps is None:
        run = Run("run", sources=tuple(range(base)))
        return Records(runs=(run,), sources=sources, events=pl.concat(events) if events else empty("events"))
    own = steps.steps.with_columns(pl.col("source") + base, pl.lit("run").alias("run"))
    run = replace(steps.runs[0], id="run", sources=tuple(range(base + len(steps.sources))))
    return Records(
        runs=(run,),
        sources=(*sources, *steps.sources),
        steps=own,
        events=pl.concat(events) if events else empty("events"),
    )


def _files(paths: Sequence[str]) -> list[Path]:
    """Every file below the paths, once."""
    return list(dict.fromkeys(path for given in paths for path in expand(given)))
