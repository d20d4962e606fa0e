"""CSV, TSV and their cousins: one row per logged step below a header, or two bare columns of step and loss."""

from __future__ import annotations

import csv
import io
import re
from pathlib import PurePath
from typing import Final

import polars as pl

from gdiag.errors import InputError
from gdiag.ingesters import algoperf, claims, columns, csv_rows, grouping_marks, monitor
from gdiag.ingesters.alias_table import RUN
from gdiag.ingesters.aliases import claim, simplify
from gdiag.ingesters.csv_shape import NUMBER, beginning, misfit, sniff
from gdiag.ingesters.reading import Input, Options, Reading

FORMAT = "csv"
_LINE: Final = columns.LINE
_CATBOOST: Final = {"learn_error.tsv": "train", "test_error.tsv": "test"}
_SPLITS: Final = ("train", "eval", "val", "valid", "validation", "test")


def recognise(given: Input) -> float:
    """Names, then rows with as many cells; or rows of two numbers."""
    shape = sniff(given.head)
    if shape is None:
        return 0.3 if misfit(given.head) else 0.0
    if not shape.skip:
        return 0.35
    known = claims.known(shape.names, Options())
    if known & {"step", "epoch"} and known & {"loss", "eval_loss", "grad_norm"}:
        return 0.95 if shape.regular else 0.65
    return 0.45 if known else 0.1


def read(given: Input, options: Options) -> Reading:
    """Every row.

    Raises:
        InputError: a table of runs or of something else, without a series.
    """
    data = given.data()
    shape = sniff(beginning(data))
    if shape is None:
        why = misfit(given.head)
        raise InputError(
            f"{given.path} {f'has {why}: which belongs to which cannot be told' if why else 'is no table that can be read'}"
        )
    frame, found = _table(data, shape)
    frame = _with_split(given.path, frame)
    _refuse_runs(given.path, frame, options)
    notes = [f"{found.headers} more header lines inside the file"] if found.headers else []
    notes += found.notes
    if not shape.skip:
        notes.append("no header: the two columns are read as step and loss")
    episodic = {"r", "l", "t"} <= set(frame.columns)
    if episodic:
        frame, about = monitor.episodes(frame, data)
        notes += about
    if algoperf.fits(frame.columns):
        frame = algoperf.restore_nan(frame)
        notes.append("empty metric cells of this format are NaN")
    if not episodic:
        columns.refuse_other(given.path, frame, options)
    bad = pl.DataFrame(found.rejects, schema={"line": pl.Int64, "reason": pl.String, "text": pl.String}, orient="row")
    return columns.reading(given.path, FORMAT, frame, options, rejects=bad, notes=notes, rows=found.rows)


def _with_split(path: str, frame: pl.DataFrame) -> pl.DataFrame:
    """The table with the split before the names of its metrics, where a folder or a file alone says it.

    DVCLive keeps a metric a file and the split in the folder's name: plots/metrics/eval/loss.tsv holds eval/loss. CatBoost has
    a file for each.
    """
    place = PurePath(path)
    if place.name in _CATBOOST and frame.columns[:1] == ["iter"]:
        return frame.rename(
            {name: f"{_CATBOOST[place.name]}/{name}" for name in frame.columns if name not in ("iter", _LINE)}
        )
    if place.parent.name in _SPLITS and {*frame.columns} - {_LINE, "step", "timestamp"} == {place.stem}:
        return frame.rename({place.stem: f"{place.parent.name}/{place.stem}"})
    return frame


def _table(data: bytes, shape: csv_rows.Shape) -> tuple[pl.DataFrame, csv_rows.Rows]:
    """Frame with `line`, and what was found on the way."""
    frame = _columnar(data, shape)
    if frame is not None:
        return frame, csv_rows.Rows(rows=frame.height)
    found = csv_rows.read(data, shape)
    if not found.frames:
        names = csv_rows.unique(list(shape.names))
        found.frames.append(pl.DataFrame(schema={**dict.fromkeys(names, pl.String), _LINE: pl.Int64}))
    return _unnamed(csv_rows.merged(found)), found


def _columnar(data: bytes, shape: csv_rows.Shape) -> pl.DataFrame | None:
    """The fast path: numbers as Float64 by the sample, None when any row does not fit."""
    if shape.separator == " " or shape.decimal_comma or b"\0" in data[:4096] or _lone_quote(data):
        return None
    names = csv_rows.unique(list(shape.names))
    sample = data[:262144].decode("utf-8", errors="replace").splitlines()[shape.skip : shape.skip + 100]
    cells = list(csv.reader(sample, delimiter=shape.separator))
    kinds: dict[str, type[pl.DataType]] = {}
    for i, name in enumerate(names):
        column = [row[i] for row in cells if len(row) > i and row[i]]
        plain = all(NUMBER.match(cell) for cell in column) and not (
            _counts(name) and grouping_marks.dots(pl.Series(column, dtype=pl.String))
        )
        kinds[name] = pl.Float64 if plain else pl.String
    if not shape.regular and len(names) > 2 and _ragged(data, shape, len(names)):
        return None
    try:
        frame = pl.read_csv(
            io.BytesIO(data), separator=shape.separator, has_header=False, skip_lines=shape.skip, new_columns=names,
            schema=kinds, encoding="utf8", raise_if_empty=False,
        )  # fmt: skip
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
        return None
    lines = data.count(b"\n") + (not data.endswith(b"\n")) - shape.skip
    if frame.width != len(names) or frame.height != lines:
        return None
    texts = [name for name, kind in kinds.items() if kind == pl.String]
    if any(grouping_marks.falls_below_a_thousand(frame[name]) for name in names if name not in texts and _counts(name)):
        return None
    frame = frame.with_columns(pl.col(texts).str.strip_chars())
    if texts and frame.select(pl.any_horizontal(pl.col(name) == name for name in texts).any()).item():
        return None  # a header once more
    frame = frame.with_columns(pl.int_range(shape.skip + 1, shape.skip + 1 + pl.len()).alias(_LINE))
    if all(frame[name].null_count() for name in names):
        frame = frame.filter(pl.any_horizontal(pl.col(name).is_not_null() for name in names))  # empty lines are no rows
    return _unnamed(frame)


def _ragged(data: bytes, shape: csv_rows.Shape, width: int) -> bool:
    """Whether rows lack cells, which polars would take for the last ones; told where no quotation mark hides separators."""
    lines = data.count(b"\n") + (not data.endswith(b"\n")) - shape.skip
    return b'"' not in data and data.count(shape.separator.encode()) < (width - 1) * lines


def _counts(name: str) -> bool:
    found = claim(name)
    return found is not None and found.canonical in grouping_marks.COUNTS


def _lone_quote(data: bytes) -> bool:
    """Whether a cell is one quotation mark, at which polars' number parser panics."""
    return b'"' in data and re.search(rb'(?:^|[,;|\t\r\n])"(?:[,;|\t\r\n]|$)', data) is not None


def _unnamed(frame: pl.DataFrame) -> pl.DataFrame:
    """Without the row index that pandas writes first, and what separators at the lines' ends make a column."""
    frame = frame.drop(name for name in frame.columns[:1] if not name or name.startswith("Unnamed: 0"))
    return frame.drop("") if "" in frame.columns and not frame[""].count() else frame


def _refuse_runs(path: str, frame: pl.DataFrame, options: Options) -> None:
    """Refuses a table with one row per run.

    Raises:
        InputError: as said.
    """
    told = {"State", "ID", "Runtime", "Notes", "Created", "User", "Tags", "Sweep"} & set(frame.columns)
    if "Name" in frame.columns and len(told) >= (1 if frame.columns[0] == "Name" else 2):
        raise InputError(
            f"{path} is a wandb runs table, one row a run with its last values: no series (export the chart's or the history's CSV)"
        )
    found = claims.known(frame.columns, options)
    if found & {"step", "epoch", "time"} or frame.height == 0:
        return
    naming = [
        n for n in frame.columns if simplify(n) in (*RUN, "name", "model", "variant", "config", "id", "state", "method")
    ]
    final = [n for n in frame.columns if re.match(r"(?:final|best)[_ ]", n.lower())]
    numbers = any(frame[n].cast(pl.Float64, strict=False).count() for n in frame.columns if n not in (*naming, "line"))
    if not numbers:
        return  # words alone are no run's last values
    if (any(frame[n].n_unique() >= 0.9 * frame.height for n in naming) and frame.height > 1) or (naming and final):
        raise InputError(
            f"{path} is a table of runs, one row a run with its last values: no series (export the metrics over steps)"
        )
