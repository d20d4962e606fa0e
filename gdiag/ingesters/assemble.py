"""Readings of files → records of runs: which files belong to one run, run ids, source indices."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import polars as pl

from gdiag.ingesters import grouping, machine_lines
from gdiag.ingesters.reading import Reading
from gdiag.model import Exit, Run, Source, Value
from gdiag.schema import KEYS, TABLES, LayerColumn, Records, empty

_CALENDAR: Final = (-62_135_596_800.0, 253_402_300_799.0)
"""Years 1 to 9999 in Unix seconds."""
_RANKED_EXITS: Final[tuple[Exit, ...]] = ("abnormal", "clean")


def assemble(given: Sequence[Reading]) -> Records:
    """Records of all readings; every row carries its run's id and its source's index."""
    readings = list(given)
    groups = [list(found.members) for found in grouping.group(readings)]
    names = _ids(readings, groups)
    runs: list[Run] = []
    tables: dict[str, list[pl.DataFrame]] = {name: [] for name in (*TABLES, "layers")}
    catalogue: dict[str, LayerColumn] = {}
    for group, base in zip(groups, names, strict=True):
        inner = _inner_runs([readings[i] for i in group])
        begins = _begins([readings[i] for i in group])
        config: dict[str, Value] = {}
        moment = _moment([readings[i] for i in group])
        for index, host in _hosts({i: readings[i] for i in group}).items():
            readings[index] = _on(host, readings[index])
        for index in group:
            reading = readings[index]
            config.update(reading.config)
            catalogue.update({c.column: c for c in reading.layer_columns})
            for table, parts in tables.items():
                frame: pl.DataFrame | None = getattr(reading, table)
                if table == "events" and frame is not None and moment and machine_lines.NO_YEAR in reading.source.notes:
                    frame = machine_lines.in_year_of(frame, moment)
                if frame is not None and frame.height:
                    parts.append(_stamped(table, _in_run_of_time(frame, begins), index, base, inner))
        known = next((r.run_name for i in group if (r := readings[i]).run_name), None)
        ended: Exit = next((e for e in _RANKED_EXITS if any(readings[i].exit == e for i in group)), "unknown")
        own: list[str | None] = [*inner] if inner else [None]
        for name in own:
            title = known if name is None else name
            told = next((end for i in group if (end := readings[i].exits.get(name or ""))), ended)
            runs.append(Run(_inner_id(base, name, len(groups)), title, tuple(group), config, exit=told))
    return Records(
        runs=tuple(runs), sources=tuple(r.source for r in readings), layer_columns=tuple(catalogue.values()),
        layers=pl.concat(tables["layers"], how="diagonal") if tables["layers"] else pl.DataFrame(schema=KEYS),
        **{name: pl.concat(tables[name], how="diagonal") if tables[name] else empty(name) for name in TABLES},
    )  # fmt: skip


def _moment(readings: Sequence[Reading]) -> float | None:
    """A time in the middle of the run's steps, else of its telemetry."""
    for table in ("steps", "gpus"):
        for reading in readings:
            frame: pl.DataFrame | None = getattr(reading, table)
            middle = frame["time"].median() if frame is not None and "time" in frame.columns else None
            if isinstance(middle, float) and 0 < middle < 4e9:
                return middle
    return None


def _hosts(readings: Mapping[int, Reading]) -> dict[int, str]:
    """Hosts called after their files: several logs of the same columns, GPU indices and hours that name no host or GPU."""
    bare = {
        i: r for i, r in readings.items()
        if r.gpus is not None and {"gpu", "time"} <= set(r.gpus.columns) and not {"host", "uuid"} & set(r.gpus.columns)
    }  # fmt: skip
    alike: dict[tuple[object, ...], list[int]] = {}
    for i, r in bare.items():
        alike.setdefault((r.source.format, *r.source.columns.items()), []).append(i)
    clash = [
        i for several in alike.values()
        if any(_overlap(bare[several[0]].gpus, bare[k].gpus) for k in several[1:])
        for i in several
    ]  # fmt: skip
    words = {i: re.split(r"[._]", Path(bare[i].source.path).name) for i in clash}
    same = set.intersection(*(set(w) for w in words.values())) if clash else set()
    own = {i: "_".join(w for w in words[i] if w not in same) for i in clash}
    return own if len(set(own.values())) == len(own) and all(own.values()) else {}


def _on(host: str, reading: Reading) -> Reading:
    """The reading with its GPUs on a host."""
    assert reading.gpus is not None
    notes = (*reading.source.notes, f"host {host} taken from the file's name: another file has the same GPU indices")
    gpus = reading.gpus.with_columns(pl.lit(host).alias("host"))
    return replace(reading, gpus=gpus, source=replace(reading.source, notes=notes))


def _overlap(one: pl.DataFrame | None, other: pl.DataFrame | None) -> bool:
    """Whether two logs hold the same GPU indices at the same time."""
    if one is None or other is None or not set(one["gpu"].drop_nulls()) & set(other["gpu"].drop_nulls()):
        return False
    a, b, c, d = (float(str(t)) if (t := f(s["time"])) is not None else float("nan")
                  for s in (one, other) for f in (pl.Series.min, pl.Series.max))  # fmt: skip
    return min(b, d) - max(a, c) > 0.5 * min(b - a, d - c)


def _ids(readings: Sequence[Reading], groups: list[list[int]]) -> list[str]:
    if len(groups) == 1:
        return ["run"]
    stems = [_stem(readings[g[0]].source) for g in groups]
    if len(set(stems)) < len(stems):
        stems = [f"{Path(readings[g[0]].source.path).parent.name}/{s}" for g, s in zip(groups, stems, strict=True)]
    seen: dict[str, int] = {}
    ids = []
    for stem in stems:
        seen[stem] = seen.get(stem, 0) + 1
        ids.append(stem if seen[stem] == 1 else f"{stem}-{seen[stem]}")
    return ids


def _stem(source: Source) -> str:
    """What a run is called by its file; MLflow's files are called by their metric and their folder by the run."""
    if source.format == "mlflow" and "/metrics/" in source.path:
        return Path(source.path.rpartition("/metrics/")[0]).name
    return Path(source.path).name.split(".")[0]


def _inner_runs(readings: Sequence[Reading]) -> list[str]:
    """Names of the runs inside the files of one group, in order of appearance."""
    found: dict[str, None] = {}
    for reading in readings:
        if reading.steps is not None and "run" in reading.steps.columns:
            found.update(dict.fromkeys(reading.steps["run"].drop_nulls().unique(maintain_order=True).to_list()))
    return list(found)


def _begins(readings: Sequence[Reading]) -> list[tuple[float, str]]:
    """First time and name of runs that follow one another in a file; empty where a time is missing or goes back."""
    steps = next((r.steps for r in readings if r.exits and r.steps is not None and "time" in r.steps.columns), None)
    if steps is None:
        return []
    first = steps.group_by("run", maintain_order=True).agg(pl.col("time").min())
    if first["time"].null_count() or not bool((first["time"].diff().drop_nulls() > 0).all()):
        return []
    return [(float(time), str(run)) for run, time in first.iter_rows()]


def _in_run_of_time(frame: pl.DataFrame, begins: Sequence[tuple[float, str]]) -> pl.DataFrame:
    """The frame with `run` filled by its time, where runs of the group follow one another and it names none."""
    if not begins or "time" not in frame.columns or ("run" in frame.columns and frame["run"].count()):
        return frame
    named = pl.lit(begins[0][1])
    for time, run in begins[1:]:
        named = pl.when(pl.col("time") >= time).then(pl.lit(run)).otherwise(named)
    return frame.with_columns(named.alias("run"))


def _inner_id(base: str, name: str | None, groups: int) -> str:
    if name is None:
        return base
    return name if groups == 1 else f"{base}/{name}"


def _stamped(table: str, frame: pl.DataFrame, index: int, base: str, inner: list[str]) -> pl.DataFrame:
    """A table with its keys filled and its columns in the order and types of the schema."""
    types = KEYS if table == "layers" else TABLES[table]
    frame = frame.with_columns(source=pl.lit(index, pl.Int32))
    if "run" in types:
        named = pl.col("run") if "run" in frame.columns else pl.lit(None, pl.String)
        if inner:
            prefix = "" if base == "run" else f"{base}/"
            named = pl.lit(prefix) + named.fill_null(inner[0])
        else:
            named = pl.lit(base)
        frame = frame.with_columns(run=named.cast(pl.String))
    for name, kind in types.items():
        # Metric columns that nothing logged stay away where rows are counted in millions.
        metric = table in ("steps", "layers") or (table == "collectives" and name.startswith("t_"))
        if name not in frame.columns and (name in KEYS or not metric):
            frame = frame.with_columns(pl.lit(None, kind).alias(name))
    if "time" in frame.columns and table != "collectives" and frame.schema["time"].is_numeric():
        # A clock that is NaN or lies outside the years 1 to 9999 tells no time, and no calendar holds it.
        told = pl.col("time").cast(pl.Float64).is_between(*_CALENDAR)
        frame = frame.with_columns(time=pl.when(told).then(pl.col("time")))
    given = frame.schema
    return frame.with_columns(pl.col(n).cast(k, strict=False) for n, k in types.items() if given.get(n, k) != k)
