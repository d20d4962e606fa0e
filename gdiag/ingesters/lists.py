"""Cells that hold lists: one element is that element, several are columns where the name says of what, else they are marked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import polars as pl

from gdiag.ingesters import parts
from gdiag.ingesters.values import as_number

Cell = float | int | str | bool | None
Flatten = Callable[[Mapping[str, object], str, int], dict[str, Cell]]
_LONGEST: Final = 1 << 12
"""Numbers of one cell that become columns."""


def spread(name: str, items: Sequence[object], flatten: Flatten, depth: int) -> dict[str, Cell]:
    """The cells of a row that a list stands for.

    Args:
        name: the list's name.
        items: what it holds.
        flatten: what makes cells of an object, a prefix and a depth.
        depth: how deep the list lies.

    Raises:
        RecursionError: objects inside are nested too deep.
    """
    while len(items) == 1 and isinstance(items[0], list):
        items = items[0]
    if not items or all(item is None for item in items):
        return {}
    objects = [item for item in items if isinstance(item, dict)]
    if len(objects) == len(items) and (len(items) > 1 or parts.record(name, [str(key) for key in objects[0]])):
        return _records(name, objects, flatten, depth)
    if len(items) == 1:
        return _single(name, items[0], flatten, depth)
    numbers = _numbers(items)
    if numbers is not None and len(items) <= _LONGEST and parts.of(name) is not None:
        return {f"{name}/{i}": item for i, item in enumerate(numbers)}
    if numbers is None and all(isinstance(item, str) for item in items) and not parts.speaks(name):
        return {}
    return {name + parts.MARK: float(len(items))}


def _numbers(items: Sequence[object]) -> list[Cell] | None:
    """The numbers of a list, those in quotation marks too; None where one is none."""
    found: list[Cell] = []
    for item in items:
        if isinstance(item, str):
            if (number := as_number(item)) is None:
                return None
            found.append(number)
        elif item is None or isinstance(item, int | float):
            found.append(item)
        else:
            return None
    return found


def _single(name: str, item: object, flatten: Flatten, depth: int) -> dict[str, Cell]:
    if isinstance(item, dict):
        return flatten({name: item}, "", depth + 1)
    if isinstance(item, str):
        return {name: item if item.isascii() else item.encode("utf-8", "replace").decode()}
    return {name: item} if isinstance(item, int | float) else {}


def _records(name: str, items: Sequence[Mapping[str, object]], flatten: Flatten, depth: int) -> dict[str, Cell]:
    """Objects that bear the name of their layer or their rank: `layers: [{"name": "blocks.0", "grad_norm": 1.2}, …]`.

    A second layer of one name gets a number; where a rank comes twice, of what its objects are is not known.
    """
    field = parts.record(name, [str(key) for key in items[0]])
    cells: dict[str, Cell] = {}
    seen: Counter[str | int] = Counter()
    before = name.rpartition("/")[0]
    before = before + "/" if before else ""
    for item in items[:_LONGEST]:
        own = item.get(field) if field is not None else None
        if isinstance(own, bool) or not isinstance(own, str | int) or own == "":
            return {name + parts.MARK: float(len(items))}
        seen[own] += 1
        if seen[own] > 1 and isinstance(own, int):
            return {name + parts.MARK: float(len(items))}
        again = f" ({seen[own]})" if seen[own] > 1 else ""
        inside = flatten({key: value for key, value in item.items() if key != field}, "", depth + 1)
        for key, value in inside.items():
            cells[f"rank{own}/{before}{key}" if isinstance(own, int) else f"{before}{key}/{own}{again}"] = value
    return cells


def spread_column(frame: pl.DataFrame, name: str, flatten: Flatten) -> pl.DataFrame:
    """The frame with a column of lists as `spread` would give it."""
    kind = frame.schema[name]
    if isinstance(kind, pl.Array):
        frame = frame.with_columns(pl.col(name).arr.to_list())
        kind = frame.schema[name]
    assert isinstance(kind, pl.List)
    length = frame[name].list.len()
    longest = int(str(length.max() or 0))
    if kind.inner == pl.String and longest > 1:
        figures = frame[name].list.eval(pl.element().str.strip_chars().cast(pl.Float64, strict=False))
        if figures.list.drop_nulls().list.len().sum() == frame[name].list.drop_nulls().list.len().sum():
            frame = frame.with_columns(figures)
            kind = pl.List(pl.Float64)
    named = isinstance(kind.inner, pl.Struct) and parts.record(name, [f.name for f in kind.inner.fields]) is not None
    if longest <= 1 and not named:
        return frame.with_columns(pl.col(name).list.first())
    if isinstance(kind.inner, pl.List | pl.Struct | pl.Array):
        return _by_row(frame, name, flatten)
    single = pl.when(pl.col(name).list.len() == 1).then(pl.col(name).list.first()).alias(name)
    fresh = [single]
    if kind.inner.is_numeric() or kind.inner in (pl.Boolean, pl.Null) or parts.speaks(name):
        several = pl.col(name).list.len() > 1
        if longest <= _LONGEST and parts.of(name) is not None and kind.inner != pl.String:
            fresh += [
                pl.when(several).then(pl.col(name).list.get(i, null_on_oob=True)).alias(f"{name}/{i}")
                for i in range(longest)
            ]
        else:
            told = several & (pl.col(name).list.drop_nulls().list.len() > 0)
            fresh.append(pl.when(told).then(pl.col(name).list.len().cast(pl.Float64)).alias(name + parts.MARK))
    frame = frame.with_columns(fresh)
    return frame if frame[name].count() else frame.drop(name)


def _by_row(frame: pl.DataFrame, name: str, flatten: Flatten) -> pl.DataFrame:
    """Lists of lists or of objects, which are rare, a row at a time."""
    rows = [{} if items is None else spread(name, items, flatten, 0) for items in frame[name].to_list()]
    frame = frame.drop(name)
    for column in dict.fromkeys(key for row in rows for key in row):
        cells = [row.get(column) for row in rows]
        texts = any(isinstance(cell, str) for cell in cells)
        fresh = (
            pl.Series(column, [None if c is None else str(c) for c in cells], dtype=pl.String) if texts
            else pl.Series(column, [None if c is None else float(c) for c in cells], dtype=pl.Float64)
        )  # fmt: skip
        frame = frame.with_columns(fresh)
    return frame
