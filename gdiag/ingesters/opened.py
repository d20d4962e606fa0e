"""Text cells that print a list, an object or an array of several numbers, as the cells of JSON that they are.

CSV files, SQLite stores and text columns of Parquet hold what `str` or `json.dumps` made of such a value; one number in
brackets is read by `values.numbers`.
"""

from __future__ import annotations

import json
import re
from typing import Final

import polars as pl

from gdiag.ingesters import flat, rare, values

_CONTAINER: Final = r"^\s*(?:[A-Za-z_][\w.]*\()*\s*(?:\w+=|[\[{(])"
_LISTED: Final = re.compile(r"[\[(]([^\[\](){}]*)[\])]")
_WORD: Final = re.compile(r"(?<![\w.])(?:nan|-?inf(?:inity)?|None|True|False)(?![\w.])", re.IGNORECASE)
_JSON_WORDS: Final = {
    "nan": "NaN", "inf": "Infinity", "-inf": "-Infinity", "infinity": "Infinity", "-infinity": "-Infinity", "none": "null",
    "true": "true", "false": "false",
}  # fmt: skip
_LONGEST: Final = 1 << 20
"""Characters of a cell that is looked at."""


def opened(frame: pl.DataFrame, texts: list[str]) -> tuple[pl.DataFrame, list[str]]:
    """The frame with the columns of text that mostly hold such cells taken apart, and notes; what cannot be stays the text that it was."""
    left: list[str] = []
    for name in texts:
        column = frame[name]
        shaped = column.str.contains(_CONTAINER).fill_null(False)
        if not shaped.any():
            continue
        shaped &= values.unwrapped(column.str.strip_chars().str.strip_chars("'\"")).is_null()
        if 2 * int(shaped.sum()) > column.count():
            frame, more = _taken_apart(frame, name, shaped)
            left += more
    return frame, rare.note(left)


def is_list(texts: pl.Series) -> bool:
    """Whether a column of text holds lists of numbers or objects: its first cell begins like one."""
    first = texts.drop_nulls().first()
    return isinstance(first, str) and re.match(r"\s*(?:[A-Za-z_.]+\()?[\[{][\s\[]*[-+.\d\"'n]", first[:200]) is not None


def _taken_apart(frame: pl.DataFrame, name: str, shaped: pl.Series) -> tuple[pl.DataFrame, list[str]]:
    """The frame with what such cells hold in columns of its own, and the columns left out."""
    cells: list[str | None] = frame[name].to_list()
    found: list[dict[str, flat.Cell]] = [{} for _ in cells]
    for row, is_shaped in enumerate(shaped.to_list()):
        loaded = _loaded(cells[row] or "") if is_shaped else None
        if loaded is None:
            continue
        try:
            got = flat.flatten({name: loaded})
        except RecursionError:
            continue
        kept = got.pop(name, None)
        cells[row] = None if kept is None else str(kept)
        found[row] = got
    names = flat.places(found)
    left = rare.left_out({key: len(rows) for key, rows in names.items()}, frame.height, rare.MOST)
    for key in left:
        del names[key]
    fresh = flat.to_frame(found, names=names)
    own = [] if all(cell is None for cell in cells) and fresh.width else [pl.Series(name, cells, dtype=pl.String)]
    frame = frame.drop(name) if not own else frame
    return frame.with_columns(*own, *fresh), left


def _loaded(text: str) -> object:
    """What a cell prints: a list or an object; None where it cannot be told."""
    if len(text) > _LONGEST:
        return None
    text = text.strip()
    if text[:1] in "[{":
        for form in (text, _as_json(text)):
            try:
                return json.loads(form)
            except (ValueError, RecursionError):
                continue
    # tensor([1., 2.], device='cuda:0'), [1. 2.] and Tensor(shape=[2], …, [1., 2.]): the last list of numbers.
    numbers = [[values.as_number(part) for part in body.replace(",", " ").split()] for body in _LISTED.findall(text)]
    told = [list_ for list_ in numbers if list_ and None not in list_]
    return told[-1] if told and told[-1] is numbers[-1] else None


def _as_json(text: str) -> str:
    """Python's own form of an object as JSON."""
    return (
        _WORD.sub(lambda word: _JSON_WORDS[word[0].lower()], text).replace("'", '"').replace("(", "[").replace(")", "]")
    )
