"""Files that hold one metric each and name it in their own name: TensorBoard's CSV download, MLflow's metric files, and tables
of steps and values."""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import Final

import polars as pl

from gdiag.errors import InputError
from gdiag.ingesters import columns, csv_rows
from gdiag.ingesters.aliases import claim, family
from gdiag.ingesters.reading import Input, Options, Reading

FORMAT = "single-metric"
_HEADER: Final = re.compile(rb'^"?Wall time"?,"?Step"?,"?Value"?\s*$', re.IGNORECASE)
_PAIR: Final = re.compile(rb'^"?(?:global_)?(?:step|iteration)s?"?,"?value"?\s*$', re.IGNORECASE)
_MLFLOW: Final = re.compile(rb"^\d{13} \S+ -?\d+\s*$")
_DOWNSAMPLED: Final = 1000
_VALUE: Final = "Value"
_SPLITS: Final = ("train", "training", "eval", "evaluation", "val", "valid", "validation", "test")


def recognise(given: Input) -> float:
    """`Wall time,Step,Value`, lines of Unix milliseconds, value and step, or `step,value` in a file called after a metric."""
    lines = given.head.splitlines()[:20]
    if not lines:
        return 0.0
    if _HEADER.match(lines[0]):
        return 0.95
    if _PAIR.match(lines[0]):
        return 0.95 if known(metric_name(given.path)) else 0.0
    return 0.9 if all(_MLFLOW.match(line) for line in lines[:-1]) and _MLFLOW.match(lines[0]) else 0.0


def read(given: Input, options: Options) -> Reading:
    """A row per point; the metric is what the file's name ends with, else the name of its folder.

    Raises:
        InputError: a download from TensorBoard that does not say whose values these are: a curve alone is no evidence.
    """
    if _HEADER.match(given.head.splitlines()[0]):
        metric = _tag(given.path, options)
        shape, kind = csv_rows.Shape(",", ("wall_time", "step", metric), 1), "tensorboard-csv"
    elif _PAIR.match(given.head.splitlines()[0]):
        metric = metric_name(given.path)
        shape, kind = csv_rows.Shape(",", ("step", metric), 1), "single-metric"
    else:
        metric = metric_name(given.path)
        shape, kind = csv_rows.Shape(" ", ("timestamp", metric, "step"), 0), "mlflow"
    found = csv_rows.read(given.data(), shape)
    empty = pl.DataFrame(schema={**dict.fromkeys(shape.names, pl.String), columns.LINE: pl.Int64})
    frame = found.frames[0] if found.frames else empty
    notes = [f"the metric is named by the file: {metric}" if metric != _VALUE else "the metric is named by --map"]
    if kind == "tensorboard-csv" and frame.height == _DOWNSAMPLED:
        notes.append("1000 points: TensorBoard sampled a longer series")
    bad = pl.DataFrame(found.rejects, schema={"line": pl.Int64, "reason": pl.String, "text": pl.String}, orient="row")
    return columns.reading(given.path, kind, frame, options, rejects=bad, notes=notes, rows=found.rows)


def _tag(path: str, options: Options) -> str:
    """The tag of a download from TensorBoard, whose file is called after run and tag unless somebody renamed it.

    Raises:
        InputError: neither the file's name nor its folder's is or ends with a metric that is known.
    """
    place = PurePath(path)
    metric, folder = metric_name(path), place.parent.name
    if known(metric):
        # val/loss.csv: what the folder is called belongs to the name.
        return f"{folder}/{metric}" if folder.lower() in _SPLITS and known(f"{folder}/{metric}") else metric
    if "-tag-" in place.name:
        return metric
    for name in (f"{metric}/{folder}", folder):  # loss/val.csv, loss/run1.csv
        if known(name) and (name == folder or metric.lower() in _SPLITS):
            return name
    if _VALUE in options.columns.values():
        return _VALUE
    raise InputError(
        f"{path} is one series from TensorBoard, and neither its name nor its folder's says of what: end its name with the "
        f"tag (…-tag-train_loss.csv) or say --map loss={_VALUE}"
    )


def known(name: str) -> bool:
    """Whether the name is that of a metric, which a step or a clock is not."""
    found = claim(name) or family(name)
    return found is not None and found.canonical not in ("step", "time", "elapsed")


def metric_name(path: str) -> str:
    """`run-version_0-tag-train_loss.csv` → train_loss, `RUN/metrics/val/loss` → val/loss; else the longest known end."""
    stem = PurePath(path).name
    folder, _, below = PurePath(path).as_posix().rpartition("/metrics/")
    if folder and "/" in below and not PurePath(path).suffix:
        return below
    stem = re.sub(r"\.(?:csv|tsv|txt|gz|zst|json)$", "", stem, flags=re.IGNORECASE)
    _, tagged, tag = stem.rpartition("-tag-")
    if tagged:
        return tag
    words = re.split(r"(?<=[-_. ])", stem)
    for i in range(len(words)):
        rest = "".join(words[i:])
        if known(rest):
            return rest
    return stem
