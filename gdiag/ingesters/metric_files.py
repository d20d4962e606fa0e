"""Files with one metric each that are the columns of one run's table, and what files of a run are called by."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from functools import lru_cache
from pathlib import PurePath
from typing import Final

import polars as pl

from gdiag.ingesters import fraction_steps, joining
from gdiag.ingesters.reading import Reading
from gdiag.model import Source

_PARTS: Final = re.compile(
    r"^(?:checkpoint[-_]?\d+|files|logs?|version_\d+|plots|metrics|scalars|tensorboard|tb|csv_logs|lightning_logs|latest-run|"
    r"latest|static|train|val|eval)$",
    re.IGNORECASE,
)
_CATBOOST: Final = ("learn_error", "test_error", "time_left")
"""Files of one run, whose names say no metric."""
COMMON: Final = frozenset({"run", "rank", "step", "line", "time", "elapsed", "epoch"})


@lru_cache(maxsize=1 << 16)
def home(path: str) -> str:
    """The folder of a run's file, without the parts that loggers add below it."""
    parts = list(PurePath(path).parent.parts)
    while parts and _PARTS.match(parts[-1]):
        parts.pop()
    return "/".join(parts)


def joined_columns(readings: list[Reading], runs: list[list[int]]) -> list[list[int]]:
    """Files with one metric each, in one home, all with other metrics, are columns of one table."""
    byhome: dict[str, list[list[int]]] = {}
    for run in runs:
        if len(run) == 1 and len(own_metrics(readings[run[0]])) <= 1:
            byhome.setdefault(_series_home(readings[run[0]].source), []).append(run)
    for near in byhome.values():
        called = Counter(PurePath(readings[run[0]].source.path).name for run in near)
        # One without a metric that is called as another is no column but goes on with that run, or is another one.
        found = [
            r for r in near if own_metrics(readings[r[0]]) or called[PurePath(readings[r[0]].source.path).name] == 1
        ]
        names = [next(iter(own_metrics(readings[run[0]])), "") for run in found]
        known = [name for name in names if name]
        if len(found) < 2 or not known or len(set(known)) < len(known):
            continue
        first = found[names.index("loss" if "loss" in known else known[0])]
        others = [run for run in found if run is not first]
        joined = _step_table(readings[first[0]])
        for run in others:
            if own_metrics(other := readings[run[0]]):  # what nobody uses may count its rows in another way
                table = fraction_steps.at_steps_of(other, joined, readings[first[0]].source.columns)
                joined = joined if table is None else joining.joined(joined, table)
            readings[run[0]] = without_steps(readings[run[0]], readings[first[0]].source.path)
        readings[first[0]] = replace(readings[first[0]], steps=joined)
        first.extend(run[0] for run in others)
        runs = [run for run in runs if run not in others]
    return runs


def _series_home(source: Source) -> str:
    """Home and file name without the metric: run1__loss.tsv and run1__lr.tsv share it; of MLflow's files the run's folder."""
    if source.format == "mlflow" and "/metrics/" in source.path:
        return source.path.rpartition("/metrics/")[0]
    stem = PurePath(source.path).name.split(".")[0]
    if stem in _CATBOOST:
        return home(source.path)
    for original in source.columns.values():
        stem = stem.removesuffix(original.replace("/", "_")).removesuffix(original.rpartition("/")[2])
    return f"{home(source.path)}/{stem}"


def own_metrics(reading: Reading) -> set[str]:
    steps = reading.steps
    layers = set() if reading.layers is None else {"layers"}
    return layers if steps is None else {c for c in steps.columns if c not in COMMON and steps[c].count()} | layers


def _step_table(reading: Reading) -> pl.DataFrame:
    return reading.steps if reading.steps is not None else pl.DataFrame()


def without_steps(reading: Reading, path: str) -> Reading:
    said = f"one run with {path}, which gives the steps"
    source = replace(reading.source, notes=(*reading.source.notes, said))
    return replace(reading, source=source, steps=None)
