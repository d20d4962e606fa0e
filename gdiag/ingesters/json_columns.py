"""An object of lists as a table: each list is a column, and only lists of one length are rows of one table."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Final

import polars as pl

from gdiag.ingesters import claims, flat, parts
from gdiag.ingesters.aliases import claim
from gdiag.ingesters.reading import Options
from gdiag.ingesters.values import escape, whole

_SHOWN: Final = 4
_TRAIN: Final = re.compile(r"(?i)(?:train|learn|fit)")
_SPLIT: Final = re.compile(
    r"(?i)(?:train|training|learn|fit|val|valid|validation|eval|evaluation|test|dev)(?:[_ -]?\d+|_set)?$"
)
_COUNTED: Final = 2
"""Values from which an object whose keys count may be a column."""


def rows_in(
    document: Mapping[str, object], options: Options
) -> tuple[list[dict[str, flat.Cell]], dict[str, list[object]]]:
    """The longest list of rows inside, flattened, and every list that may be a column.

    Objects in a list are rows, but cells where they only wrap numbers of the list's own name (`"loss": [{"value": 2.1}, …]`)
    beside a list as long.
    """
    lists = {str(k): _in_order(v) for k, v in document.items() if isinstance(v, list | dict) and v}
    lists = {k: v for k, v in lists.items() if v}
    objects = {k for k, v in lists.items() if all(isinstance(item, dict) for item in v)}
    plain = {len(v) for k, v in lists.items() if k not in objects}
    cells = {k for k in objects if len(lists[k]) in plain and _wrapped(k, lists[k], options)}
    rows = max((lists[k] for k in objects - cells), key=len, default=[])
    return [flat.flatten(row) for row in rows if isinstance(row, dict)], {
        k: v for k, v in lists.items() if k not in objects or k in cells
    }


def split(document: dict[str, object]) -> dict[str, object]:
    """An object of `columns` and `data` as pandas splits a table, or of rows by their number, as an object of rows."""
    names, data = document.get("columns"), document.get("data")
    if isinstance(names, list) and isinstance(data, list) and data:
        fits = all(isinstance(row, list) and len(row) == len(names) for row in data)
        return {"data": [dict(zip(map(str, names), row, strict=True)) for row in data]} if fits else document
    rows = _in_order(document)
    return {"rows": rows} if rows and all(isinstance(row, dict) for row in rows) else document


def by_split(document: Mapping[str, object]) -> dict[str, object] | None:
    """The lists of objects that are called after splits under both names: `{"train": {"logloss": […]}, "eval": {…}}` (XGBoost)."""
    inside = {
        str(k): v for k, v in document.items() if isinstance(v, dict) and any(isinstance(i, list) for i in v.values())
    }
    if len(inside) < _COUNTED or not all(_SPLIT.match(name) for name in inside):
        return None
    known = {split: "train" if _TRAIN.match(split) else split for split in inside}
    return {f"{known[split]}/{name}": items for split, found in inside.items() for name, items in found.items()}


def _in_order(found: list[object] | Mapping[str, object]) -> list[object]:
    """A list, or an object whose keys count its values as pandas writes columns: `{"0": 4.2, "1": 4.1, …}`; else nothing."""
    if isinstance(found, list):
        return found
    numbered = {whole(str(key)): value for key, value in found.items()}
    if len(found) < _COUNTED or numbered.keys() != {*range(len(found))}:
        return []
    return [numbered[i] for i in range(len(found))]


def _wrapped(name: str, items: list[object], options: Options) -> bool:
    keys = {str(key) for item in items[:20] if isinstance(item, dict) for key in item}
    return bool(claims.known([name], options)) and not claims.known([*keys], options)


def table(lists: Mapping[str, list[object]], options: Options) -> tuple[pl.DataFrame | None, list[str]]:
    """The columns of the commonest length above one, and what is to be said; no table where no list is as long.

    Among lengths as common the one whose columns tell more of training wins, then the longer one.
    """
    lengths = Counter(len(items) for items in lists.values())

    def weight(length: int) -> tuple[int, int, int]:
        names = [name for name, items in lists.items() if len(items) == length]
        return lengths[length], len(claims.known(names, options)), length

    length = max(lengths, key=weight, default=0)
    if length < 2:
        return None, []
    kept = {name: items for name, items in lists.items() if len(items) == length}
    rows = [flat.flatten(dict(zip(kept, cells, strict=True))) for cells in zip(*kept.values(), strict=True)]
    notes = [f"one object of columns with {length} values each"]
    others = [n for n in lists if n not in kept and (claims.known([n], options) or parts.speaks(n))]
    if others:
        shown = ", ".join(f"{escape(name, 40)} ({len(lists[name])})" for name in others[:_SHOWN])
        more = f" and {len(others) - _SHOWN} more" if len(others) > _SHOWN else ""
        notes.append(f"left out, for nothing tells which rows their values belong to: {shown}{more}")
    frame, more_notes = _with_steps(flat.to_frame(rows))
    return frame, notes + more_notes


def _with_steps(frame: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    """The frame with the steps that damage took away, where the others are evenly spaced; else without those rows."""
    name = next((n for n in frame.columns if (found := claim(n)) is not None and found.canonical == "step"), None)
    if name is None or not frame.schema[name].is_numeric() or not 0 < frame[name].count() < frame.height:
        return frame, []
    row, step = pl.int_range(pl.len()), pl.col(name)
    known = frame.select(row.alias("row"), step).drop_nulls()
    slopes = known.select(step.diff() / pl.col("row").diff()).to_series().drop_nulls()
    lost = frame[name].null_count()
    many = "1 row has no step" if lost == 1 else f"{lost} rows have no step"
    if slopes.n_unique() != 1 or slopes[0] <= 0:
        return frame.filter(step.is_not_null()), [f"{many}: left out"]
    first, at = float(known[name][0]), int(known["row"][0])
    return frame.with_columns((first + (row - at) * slopes[0]).alias(name)), [
        f"{many}: counted from the others, which are evenly spaced"
    ]
