"""A chunk of JSON objects, one a line, at the speed of a columnar reader: without loss or not at all.

polars reads the chunk with the schema learned so far; a count of the quotation marks proves that it left out no key.
A chunk that does not fit goes to pyarrow, which infers its own types.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl
import polars.selectors as cs

from gdiag.ingesters import flat, json_rows

WIDE: Final = 256
"""Columns above which a frame is put in one piece: the reader gives dozens, and each costs for every column."""
_TAIL: Final = 32 << 10
"""End of a chunk that is looked at for new keys before it is parsed, B."""
_FEW: Final = 16
"""Rows; where one of so many brings a new key, new keys come all the time."""
_SPARSE: Final = 1 << 22
"""Cells of a chunk in which they do, above which it is read row by row."""
_STAND_INS: Final = {b"NaN": b"1.2345678901234567e307", b"Infinity": b"2.3456789012345678e307"}
"""Numbers that no log holds: polars reads them in place of the words that it refuses."""
_LONG: Final = r"^-?\d{300}"
"""How a stand-in is written where polars makes a text of it."""
_BLOCK: Final = 256 << 10
_QUOTE: Final = 34
_NEWLINE: Final = 10
_PLAIN: Final = (pl.Float64, pl.Boolean)
"""Types of columns whose values bear no quotation marks."""
_UNCLEAR: Final = r"^(?:-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|true|false)$|null"
_KEY_ENDS: Final = (b'":', b'":null', b'": null')
"""Ends of a key, of one without a value, and of one without a value behind a blank."""
_DEEP: Final = 64
"""pyarrow's parser overflows the stack on very deep input."""


@dataclass(frozen=True, slots=True)
class Part:
    """A chunk that was read without loss."""

    frame: pl.DataFrame
    """Flat, a row per object."""
    lines: pl.Series
    """Line of every row, 0 for the chunk's first."""
    newlines: int
    learned: Mapping[str, pl.DataType]
    """Types that were not known before."""


def read(data: bytes, known: Mapping[str, pl.DataType]) -> Part | None:
    """The chunk by polars or else by pyarrow; None when neither reads it without loss."""
    tail = data[data.rfind(b"\n", 0, max(len(data) - _TAIL, 0)) + 1 :]
    # A key that comes late mostly stays. Types that are known already are left alone: the parser finds what does not fit them.
    learned: Mapping[str, pl.DataType] = json_rows.learn(tail, known)
    schema = {**known, **learned}
    if not schema or b"\0" in data or not _utf8(data) or (learned and _too_sparse(tail, len(data))):
        return None
    try:
        frame = _polars(schema, data)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
        if b"NaN" not in data and b"Infinity" not in data:
            # Damage that pyarrow would stumble over too.
            return None
        frame = _stood_in(schema, data)
    if frame is None:
        frame = None if _too_deep(data) else _arrow(data)
        if frame is None or frame.height != data.count(b"\n{") + data.startswith(b"{"):
            # pyarrow reads objects that are glued together, which have no line of their own.
            return None
        learned = frame.schema
    newlines = count(data, _NEWLINE)
    lines = _lines(data, newlines, frame.height)
    if lines is None:
        return None
    frame = flat.flatten_frame(frame)
    return Part(frame.rechunk() if frame.width > WIDE else frame, lines, newlines, learned)


def count(data: bytes, byte: int = _NEWLINE) -> int:
    """Occurrences of a byte, several times faster than bytes.count where they are frequent.

    Block by block: the comparison's result then stays in the processor's cache.
    """
    marks = np.frombuffer(data, dtype=np.uint8)
    return sum(int(np.count_nonzero(marks[i : i + _BLOCK] == byte)) for i in range(0, len(marks), _BLOCK))


def _too_sparse(tail: bytes, size: int) -> bool:
    """Whether the rows of so many bytes that end like these bring new keys all the time: what they fill is then next to nothing."""
    records = [record for raw in tail.split(b"\n")[:-1] if (record := json_rows.keys(raw))]
    half = len(records) // 2
    if half < _FEW:
        return False
    seen = set().union(*records[:half])
    fresh = [record - seen for record in records[half:]]
    if sum(map(bool, fresh)) < len(fresh) / _FEW:
        return False
    rows = len(records) * size / len(tail)
    return rows * rows * len(set().union(*fresh)) / len(fresh) > _SPARSE


def _polars(schema: dict[str, pl.DataType], data: bytes) -> pl.DataFrame | None:
    """The chunk under the schema, None when it holds keys that the schema lacks, one key twice or objects for texts."""
    frame = pl.read_ndjson(io.BytesIO(data), schema=schema)
    seen = _Seen()
    seen.add(frame)
    return frame if seen.is_all_of(data) else None


@dataclass(slots=True)
class _Seen:
    """What a parsed frame tells of the JSON that it was."""

    keys: int = 0
    """Keys whose value was not null."""
    texts: int = 0
    unclear: bool = False
    """Whether a text may have been a number or a truth value, or holds the word that stands for nothing."""
    objects: bool = False
    """Whether a text may have been an object or a list."""

    def add(self, frame: pl.DataFrame) -> None:
        self.keys += frame.height * frame.width - sum(frame.null_count().row(0))
        for i, kind in enumerate(frame.dtypes):
            if isinstance(kind, _PLAIN):
                continue
            column = frame.to_series(i)
            if isinstance(kind, pl.Struct):
                if column.count():
                    self.add(column.drop_nulls().struct.unnest())
                continue
            texts = column.explode(empty_as_null=False, keep_nulls=False) if isinstance(kind, pl.List) else column
            if texts.dtype == pl.String:
                self.texts += texts.count()
                self.unclear |= bool(texts.str.contains(_UNCLEAR).any())
                self.objects |= bool(texts.str.contains(r"^[{\[]").any())

    def is_all_of(self, data: bytes) -> bool:
        """Whether the JSON has no more keys: by its quotation marks if no text could hide one, else by its keys."""
        if self.objects:
            return False
        more = count(data, _QUOTE) - 2 * (self.keys + self.texts)
        if not self.unclear and (not more or more == 2 * data.count(b"null")):
            return True
        keys, none, none_behind_blank = (data.count(end) - data.count(b"\\" + end) for end in _KEY_ENDS)
        return keys == self.keys + none + none_behind_blank


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
    if frame is None or any(text.str.contains(_LONG).any() for text in frame.select(cs.string())):
        return None
    return _restored(frame, words)


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
    try:
        frame = pl.from_arrow(table)
    except pl.exceptions.PolarsError:
        # Lists of nothing but null.
        return None
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


def _lines(data: bytes, newlines: int, rows: int) -> pl.Series | None:
    """Line of every row, None when rows and lines do not pair up."""
    ends = newlines + (not data.endswith(b"\n"))
    if ends == rows:
        return pl.int_range(rows, dtype=pl.Int64, eager=True)
    filled = [i for i, text in enumerate(data.split(b"\n")) if text.strip()]
    return pl.Series(filled, dtype=pl.Int64) if len(filled) == rows else None
