"""SQLite stores of trackers: Trackio's metrics table and MLflow's.

Known from source code: gradio-app/trackio (table `metrics`: run_name, step, timestamp, metrics as JSON text) and
mlflow (table `metrics`: key, value, timestamp in ms, run_uuid, step, is_nan).
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from typing import Final

import polars as pl

from gdiag.errors import InputError
from gdiag.ingesters import columns, flat
from gdiag.ingesters.reading import Input, Options, Reading

FORMAT = "sqlite"
_MAGIC: Final = b"SQLite format 3\x00"
_MOST: Final = 20_000_000
"""Rows read from one store."""


def recognise(given: Input) -> float:
    """The file's magic."""
    return 1.0 if given.head.startswith(_MAGIC) else 0.0


def read(given: Input, options: Options) -> Reading:
    """Every logged row of every run in the store.

    Raises:
        InputError: damaged, or without a table of metrics.
    """
    try:
        frame, kind = _metrics(given.data())
    except (sqlite3.Error, ValueError, OverflowError) as error:
        raise InputError(f"{given.path} is a damaged SQLite file ({error})") from error
    if frame is None:
        raise InputError(f"{given.path} is a SQLite file without a table of metrics")
    return columns.reading(given.path, kind, frame, options, line=None)


def _metrics(content: bytes) -> tuple[pl.DataFrame | None, str]:
    if content[18:20] == b"\x02\x02":
        # A store in write-ahead mode cannot be opened from memory; what was written to the main file can.
        content = content[:18] + b"\x01\x01" + content[20:]
    store = sqlite3.connect(":memory:")
    try:
        store.deserialize(content)
        names = {str(row[1]) for row in store.execute("pragma table_info(metrics)")}
        if {"step", "metrics"} <= names:
            return _trackio(store, names), "trackio"
        if {"key", "value", "step", "run_uuid"} <= names:
            return _mlflow(store), "mlflow-store"
        return None, FORMAT
    finally:
        store.close()


def _trackio(store: sqlite3.Connection, names: set[str]) -> pl.DataFrame:
    run = "run_name" if "run_name" in names else "null"
    time = "timestamp" if "timestamp" in names else "null"
    rows: list[dict[str, flat.Cell]] = []
    # Column names come from the fixed choices above, never from the file.
    query = f"select {run}, step, {time}, metrics from metrics order by rowid limit {_MOST}"
    for name, step, clock, text in store.execute(query):
        try:
            cells = flat.flatten(json.loads(text)) if isinstance(text, str | bytes) else {}
        except (ValueError, RecursionError, AttributeError):
            cells = {}
        known: dict[str, flat.Cell] = {"run": _cell(name), "step": _cell(step), "timestamp": _cell(clock)}
        rows.append({**cells, **{key: value for key, value in known.items() if value is not None}})
    return flat.to_frame(rows)


def _mlflow(store: sqlite3.Connection) -> pl.DataFrame:
    query = (
        "select run_uuid, step, timestamp, key, value, is_nan from metrics "
        f"order by run_uuid, timestamp, rowid limit {_MOST}"
    )
    # A metric that has a step once more was logged by a run that was taken up, or several times: rows of their own.
    rows: dict[tuple[str, int, int], dict[str, flat.Cell]] = {}
    seen: Counter[tuple[str, int, str]] = Counter()
    for name, at, time, key, value, nan in store.execute(query):
        run, step = str(name), int(at or 0)
        again = seen[run, step, str(key)]
        seen[run, step, str(key)] += 1
        row = rows.setdefault((run, step, again), {"run": run, "step": step})
        row["timestamp"] = _cell(time)
        row[str(key)] = float("nan") if nan else _cell(value)
    return flat.to_frame(list(rows.values()))


def _cell(value: object) -> flat.Cell:
    return value if isinstance(value, int | float | str) else None
