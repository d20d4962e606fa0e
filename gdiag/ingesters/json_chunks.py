"""JSON objects, one a line, at the speed of a columnar reader and with the patience of a line-wise one.

A chunk is parsed by polars with the schema learned so far and the keys of its own last rows; a count of the quotation
marks proves that no key was left out. A chunk that does not fit goes to pyarrow, which infers its own types; one that fails
there is cut into pieces, and only a failing piece is read line by line.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import polars as pl
import polars.selectors as cs

from gdiag.ingesters import flat, json_rows

CHUNK: Final = 16 << 20
PIECES: Final = (2 << 20, 256 << 10)
"""Sizes that a failing chunk is cut into, B; what fails at the last one is read line by line."""
LEARN: Final = 1 << 20
LONGEST: Final = 64 << 20
"""A longer line is no log row, B."""
_TAIL: Final = 32 << 10
"""End of a chunk that is looked at for new keys before it is parsed, B."""
_STAND_INS: Final = {b"NaN": b"1.2345678901234567e307", b"Infinity": b"2.3456789012345678e307"}
"""Numbers that no log holds: polars reads them in place of the words that it refuses."""
_BLOCK: Final = 256 << 10
_QUOTE: Final = 34
_NEWLINE: Final = 10
_DEEP: Final = 64
"""pyarrow's parser overflows the stack on very deep input."""


@dataclass(slots=True)
class Chunks:
    """Reader state: what was learned, what was found bad."""

    schema: dict[str, pl.DataType] = field(default_factory=dict)
    bad: list[json_rows.Bad] = field(default_factory=list)
    frames: list[pl.DataFrame] = field(default_factory=list)
    objects: int = 0
    """Objects read."""
    glued: int = 0
    """Lines that held several objects."""
    repaired: int = 0
    """Lines with NUL bytes or broken UTF-8 that could be read without them."""


def read(content: memoryview | bytes, chunk: int = CHUNK, pieces: tuple[int, ...] = PIECES) -> Chunks:
    """Every object in `content` as flat frames with a `line` column (1-based)."""
    state = Chunks()
    line = 1
    for start, end in _cuts(content, chunk):
        if end - start > chunk + LONGEST:
            state.bad.append(
                json_rows.Bad(line, f"line of {(end - start) >> 20} MiB", bytes(content[start : start + 200]))
            )
            line += 1
            continue
        data = bytes(content[start:end])
        if not state.schema and len(data) > pieces[-1]:
            state.schema = json_rows.learn(data[:LEARN])
        elif state.schema:
            state.schema = _with_late_keys(state.schema, data)
        newlines = _count(data, _NEWLINE)
        _read_part(state, data, line, newlines, pieces)
        line += newlines
    return state


def _with_late_keys(schema: dict[str, pl.DataType], data: bytes) -> dict[str, pl.DataType]:
    """The schema and the keys that only the chunk's last rows hold: a key that comes late mostly stays.

    Types that are known already are left alone: what does not fit them is found by the parser.
    """
    start = data.rfind(b"\n", 0, max(len(data) - _TAIL, 0)) + 1
    return {**json_rows.learn(data[start:]), **schema}


def _cuts(content: memoryview | bytes, size: int) -> Iterator[tuple[int, int]]:
    """Ranges of about `size` bytes that end behind a newline."""
    start, total = 0, len(content)
    while start < total:
        end = min(start + size, total)
        while end < total:
            window = bytes(content[max(end - 1, start) : end + (1 << 16)])
            found = window.find(b"\n")
            if found >= 0:
                end = max(end - 1, start) + found + 1
                break
            end = min(end + (1 << 16), total)
        yield start, end
        start = end


def _count(data: bytes, byte: int) -> int:
    """Occurrences of a byte, several times faster than bytes.count where they are frequent.

    Block by block: the comparison's result then stays in the processor's cache.
    """
    marks = np.frombuffer(data, dtype=np.uint8)
    return sum(int(np.count_nonzero(marks[i : i + _BLOCK] == byte)) for i in range(0, len(marks), _BLOCK))


def _read_part(state: Chunks, data: bytes, line: int, newlines: int, pieces: tuple[int, ...]) -> None:
    frame = _columnar(state, data, line, newlines) if state.schema else None
    if frame is None and pieces and len(data) > pieces[-1]:
        for start, end in _cuts(data, pieces[0]):
            part = data[start:end]
            newlines = _count(part, _NEWLINE)
            _read_part(state, part, line, newlines, pieces[1:])
            line += newlines
        return
    if frame is None:
        rows = json_rows.parse(data, line)
        state.bad += rows.bad
        state.glued += rows.glued
        state.repaired += rows.repaired
        frame = flat.to_frame(rows.rows, rows.lines)
    if frame.height:
        state.frames.append(frame)
        state.objects += frame.height


def _columnar(state: Chunks, data: bytes, line: int, newlines: int) -> pl.DataFrame | None:
    """The chunk by polars or else by pyarrow; None when neither reads it without loss."""
    if b"\0" in data or not _utf8(data):
        return None
    try:
        frame = _polars(state.schema, data)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
        if b"NaN" not in data and b"Infinity" not in data:
            # Damage that pyarrow would stumble over too.
            return None
        frame = _stood_in(state.schema, data)
    if frame is None:
        if _too_deep(data):
            return None
        frame = _arrow(data)
        if frame is None:
            return None
        state.schema = json_rows.widen(state.schema, frame.schema)
    lines = _lines(data, line, newlines, frame.height)
    if lines is None:
        return None
    if any(kind.is_nested() for kind in frame.dtypes):
        frame = flat.flatten_frame(frame)
    if flat.LINE in frame.columns:
        frame = frame.rename({flat.LINE: flat.LOGGED})
    return frame.with_columns(lines.alias(flat.LINE))


def _polars(schema: dict[str, pl.DataType], data: bytes) -> pl.DataFrame | None:
    """The chunk under the schema, None when it holds keys that the schema lacks or one key twice."""
    frame = pl.read_ndjson(io.BytesIO(data), schema=schema)
    marks, seen = _count(data, _QUOTE), flat.quotes(frame)
    return frame if marks == seen or marks == seen + 2 * data.count(b"null") else None


def _stood_in(schema: dict[str, pl.DataType], data: bytes) -> pl.DataFrame | None:
    """The chunk with numbers in place of NaN and infinities, and these put back."""
    words = [word for word in _STAND_INS if word in data]
    if any(kind.is_nested() for kind in schema.values()) or any(_STAND_INS[word] in data for word in words):
        return None
    plain = data
    for word in words:
        plain = plain.replace(word, _STAND_INS[word])
    try:
        frame = _polars(schema, plain)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
        return None
    return None if frame is None else _restored(frame, words)


def _restored(frame: pl.DataFrame, words: list[bytes]) -> pl.DataFrame:
    """The words in place of the numbers that stood in for them."""
    for word in words:
        number, text = float(_STAND_INS[word]), _STAND_INS[word].decode()
        value = float("nan") if word == b"NaN" else float("inf")
        frame = frame.with_columns(
            pl.when(cs.float().abs() == number).then(cs.float().sign() * value).otherwise(cs.float()),
            cs.string().str.replace_all(text, word.decode(), literal=True),
        )
    return frame


def _arrow(data: bytes) -> pl.DataFrame | None:
    # Imported here: it takes as long as reading a small log.
    import pyarrow as pa
    import pyarrow.json

    options = pyarrow.json.ReadOptions(block_size=max(len(data) // 2, 8 << 20) + 1)
    try:
        table = pyarrow.json.read_json(io.BytesIO(data), read_options=options)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
    clocks = [i for i, kind in enumerate(table.schema.types) if pa.types.is_timestamp(kind)]
    for i in clocks:
        table = table.set_column(i, table.schema.names[i], table.column(i).cast(pa.string()))
    frame = pl.from_arrow(table)
    if not isinstance(frame, pl.DataFrame):
        return None
    whole = [name for name, kind in frame.schema.items() if kind.is_integer() or kind == pl.Null]
    return frame.with_columns(pl.col(whole).cast(pl.Float64))


def _utf8(data: bytes) -> bool:
    if data.isascii():
        return True
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _too_deep(data: bytes) -> bool:
    """Whether brackets nest deeper than a log row does; brackets inside strings count too, which only costs speed."""
    if data.count(b"{") + data.count(b"[") <= data.count(b"\n{") + _DEEP:
        return False
    marks = np.frombuffer(data, dtype=np.uint8)
    opening = (marks == 123) | (marks == 91)
    places = np.flatnonzero(opening | (marks == 125) | (marks == 93))
    steps = np.where(opening[places], 1, -1)
    return bool(places.size and np.cumsum(steps, dtype=np.int64).max() > _DEEP)


def _lines(data: bytes, first: int, newlines: int, rows: int) -> pl.Series | None:
    """Line of every row, None when rows and lines do not pair up."""
    ends = newlines + (not data.endswith(b"\n"))
    if ends == rows:
        return pl.int_range(first, first + rows, dtype=pl.Int64, eager=True)
    filled = [i for i, text in enumerate(data.split(b"\n"), first) if text.strip()]
    return pl.Series(filled, dtype=pl.Int64) if len(filled) == rows else None
