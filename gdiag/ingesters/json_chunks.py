"""JSON objects, one a line, at the speed of a columnar reader and with the patience of a line-wise one.

Chunks go to the columnar reader, the next one while the last one is used. One that it cannot read without loss is cut into
pieces, and only a failing piece is read line by line.
"""

from __future__ import annotations

import itertools
from collections import Counter, deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Final

import polars as pl

from gdiag.ingesters import flat, json_columnar, json_rows, parts, rare, splits, values
from gdiag.ingesters.reading import Take

CHUNK: Final = 16 << 20
PIECES: Final = (2 << 20, 256 << 10)
"""Sizes that a failing chunk is cut into, B; what fails at the last one is read line by line."""
LEARN: Final = 1 << 20
LONGEST: Final = 64 << 20
"""A longer line is no log row, B."""
_WINDOW: Final = 64 << 10
_SPREAD: Final = 1
"""Cells that the table of a piece whose rows are read one by one may have for each of its bytes; what is rarer is kept aside."""
_SCORES: Final = 64
"""Dropped columns whose rows are kept in mind."""
_AHEAD: Final = 2
"""Chunks in work at a time: one is checked on one core while the other is parsed on all."""


@dataclass(slots=True)
class Chunks:
    """Reader state: what was learned, what was found bad."""

    wanted: Callable[[str], bool]
    training: Callable[[str], bool] = lambda _: False
    """Whether a column of this name makes a row one of training."""
    schema: dict[str, pl.DataType] = field(default_factory=dict)
    bad: list[json_rows.Bad] = field(default_factory=list)
    frames: list[pl.DataFrame] = field(default_factory=list)
    unused: dict[str, bool | None] = field(default_factory=dict)
    """Columns that were dropped because nobody wants them, and whether each held nothing but numbers; None of an empty one."""
    objects: int = 0
    """Objects read."""
    glued: int = 0
    """Lines that held several objects."""
    repaired: int = 0
    """Lines with NUL bytes or broken UTF-8 that could be read without them."""
    aside: rare.Aside = field(default_factory=rare.Aside)
    """Cells that no frame has, for next to no row of their piece fills their columns."""

    trained: set[str] = field(default_factory=set)
    """Dropped columns of numbers that rows of training fill."""
    scores: dict[str, list[pl.Series]] = field(default_factory=dict)
    """The others → rows that fill them."""

    def set_aside(self, column: pl.Series, rows: pl.Series, training: pl.Series) -> None:
        """A column that nobody wants.

        Args:
            column: its cells in a piece.
            rows: the rows of the whole that they stand in.
            training: which of them are training's.
        """
        plain = column.name.removesuffix(parts.MARK)
        filled = column.is_not_null()
        if not filled.any():
            self.unused.setdefault(plain, None)
            return
        numeric = values.are_numbers(column)
        self.unused[plain] = numeric and self.unused.get(plain) is not False
        if not numeric or plain in self.trained:
            return
        if (filled & training).any():
            self.trained.add(plain)
            self.scores.pop(plain, None)
        elif plain in self.scores or len(self.scores) < _SCORES:
            self.scores.setdefault(plain, []).append(rows.filter(filled))


def read(
    take: Take, size: int, wanted: Callable[[str], bool] = lambda _: True, training: Callable[[str], bool] = lambda _: False,
    *, chunk: int = CHUNK, pieces: tuple[int, ...] = PIECES,
) -> Chunks:  # fmt: skip
    """Every object as flat frames with a `line` column (1-based).

    Args:
        take: the bytes from one offset to another.
        size: bytes there are.
        wanted: whether a column of this name is kept.
        training: whether one makes a row one of training.
        chunk: bytes read at a time.
        pieces: bytes of the pieces that a failing chunk is cut into.
    """
    state = Chunks(wanted, training)
    if size <= pieces[-1]:
        _by_line(state, take(0, size), 1)
        return state
    state.schema = json_rows.learn(take(0, min(LEARN, size)))
    line = 1
    for start, end, part in _ahead(state, take, size, chunk):
        if part is not None:
            line += _use(state, part, line)
        elif _too_long(start, end, chunk):
            state.bad.append(json_rows.Bad(line, f"line of {(end - start) >> 20} MiB", take(start, start + 200)))
            line += 1
        else:
            line += _in_pieces(state, take(start, end), line, pieces)
    return state


def joined(state: Chunks) -> tuple[pl.DataFrame, list[str]]:
    """All rows of what was read, whose frames are used up, and the columns that are not in it whole."""
    frames, aside = state.frames, state.aside
    names = {*aside.cells, *(name for frame in frames for name in frame.columns)}
    left: list[str] = []
    if state.objects * len(names) > rare.MOST:
        counts = Counter({name: len(rows) for name, (rows, _) in aside.cells.items()})
        for frame in frames:
            counts.update(dict(zip(frame.columns, (frame.height - n for n in frame.null_count().row(0)), strict=True)))
        left = rare.left_out(counts, state.objects, rare.MOST)
        frames = [frame.drop(left, strict=False) for frame in frames]
    try:
        frame = pl.concat(frames)
    except pl.exceptions.PolarsError:
        # Another column here and there: this looks at every column of every frame.
        frame = pl.concat(frames, how="diagonal_relaxed")
    state.frames.clear()
    for name in left:
        aside.cells.pop(name, None)
    fresh = [flat.column(name, cells, rows, frame.height) for name, (rows, cells) in aside.cells.items()]
    frame = frame.with_columns([_beside(frame, series) for series in fresh])
    if state.scores:
        scored = pl.select(pl.repeat(False, frame.height)).to_series().alias(splits.SCORED)
        frame = frame.with_columns(scored.scatter(pl.concat(itertools.chain(*state.scores.values())).unique(), True))
    return (frame.rechunk() if frame.width > json_columnar.WIDE else frame), [*aside.lost, *left]


def _beside(frame: pl.DataFrame, cells: pl.Series) -> pl.Series:
    """A column with the cells of it that were kept aside."""
    if cells.name not in frame.columns:
        return cells
    own = frame[cells.name]
    if own.dtype != cells.dtype:
        own, cells = own.cast(pl.String), cells.cast(pl.String)
    return own.zip_with(own.is_not_null(), cells)


def _ahead(state: Chunks, take: Take, size: int, chunk: int) -> Iterator[tuple[int, int, json_columnar.Part | None]]:
    """Every chunk and what the columnar reader made of it, in order."""

    def parsed(start: int, end: int, known: dict[str, pl.DataType]) -> json_columnar.Part | None:
        return None if _too_long(start, end, chunk) else json_columnar.read(take(start, end), known)

    waiting: deque[tuple[int, int, Future[json_columnar.Part | None]]] = deque()
    with ThreadPoolExecutor(_AHEAD) as pool:
        for start, end in _cuts(take, size, chunk):
            waiting.append((start, end, pool.submit(parsed, start, end, state.schema)))
            if len(waiting) == _AHEAD:
                first = waiting.popleft()
                yield *first[:2], first[2].result()
        for begin, end, part in waiting:
            yield begin, end, part.result()


def _too_long(start: int, end: int, chunk: int) -> bool:
    return end - start > chunk + LONGEST


def _cuts(take: Take, total: int, size: int) -> Iterator[tuple[int, int]]:
    """Ranges of about `size` bytes that end behind a newline."""
    start = 0
    while start < total:
        end = min(start + size, total)
        while end < total:
            before = max(end - 1, start)
            found = take(before, end + _WINDOW).find(b"\n")
            if found >= 0:
                end = before + found + 1
                break
            end = min(end + _WINDOW, total)
        yield start, end
        start = end


def _in_pieces(state: Chunks, data: bytes, line: int, pieces: tuple[int, ...]) -> int:
    """What failed in columns once more in smaller pieces, line by line at the last; returns the lines that it has."""
    if not pieces or len(data) <= pieces[-1]:
        return _by_line(state, data, line)
    first = line
    for start, end in _cuts(lambda a, b: data[a:b], len(data), pieces[0]):
        part = json_columnar.read(data[start:end], state.schema)
        if part is None:
            line += _in_pieces(state, data[start:end], line, pieces[1:])
        else:
            line += _use(state, part, line)
    return line - first


def _by_line(state: Chunks, data: bytes, line: int) -> int:
    rows = json_rows.parse(data, line)
    state.bad += rows.bad
    state.glued += rows.glued
    state.repaired += rows.repaired
    names = flat.places(rows.rows)
    told = {at for name in names if state.training(name) for at in names[name] if rows.rows[at][name] is not None}
    training = pl.Series([at in told for at in range(len(rows.rows))], dtype=pl.Boolean)
    for name in [name for name in names if not state.wanted(name)]:
        places = names.pop(name)
        cells = flat.column(name, [rows.rows[at][name] for at in places], [*range(len(places))], len(places))
        state.set_aside(cells, pl.Series(places, dtype=pl.Int64) + state.objects, training.gather(places))
    for name in rare.left_out({name: len(where) for name, where in names.items()}, len(rows.rows), _SPREAD * len(data)):
        where = names.pop(name)
        own = flat.LOGGED if name == flat.LINE else name
        state.aside.put(own, [state.objects + at for at in where], [rows.rows[at][name] for at in where])
    _keep(state, flat.to_frame(rows.rows, names=names), pl.Series(rows.lines, dtype=pl.Int64))
    return json_columnar.count(data)


def _use(state: Chunks, part: json_columnar.Part, line: int) -> int:
    state.schema = json_rows.widen(state.schema, part.learned)
    _keep(state, part.frame, part.lines + line)
    return part.newlines


def _keep(state: Chunks, frame: pl.DataFrame, lines: pl.Series) -> None:
    """What is wanted of a frame, with the lines of its rows."""
    if not len(lines):
        return
    idle = [name for name in frame.columns if not state.wanted(name)]
    if idle:
        told = [frame[name].is_not_null() for name in frame.columns if state.training(name)]
        training = pl.select(pl.any_horizontal(pl.repeat(False, frame.height), *told)).to_series()
        rows = pl.select(pl.int_range(state.objects, state.objects + frame.height)).to_series()
        for name in idle:
            state.set_aside(frame.drop_in_place(name), rows, training)
    if flat.LINE in frame.columns:
        frame = frame.rename({flat.LINE: flat.LOGGED})
    lines = lines.alias(flat.LINE)
    state.frames.append(frame.insert_column(0, lines) if frame.width else lines.to_frame())
    state.objects += len(lines)
