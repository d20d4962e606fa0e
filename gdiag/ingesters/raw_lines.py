"""Step lines read from a console's bytes before any line becomes text: most lines of a console are alike.

A layout is learnt from the first step lines, forms from some of them all through the console; what fits them is read where it
stands (`line_forms`). Only the other lines are made text, for `fields` and the readers of everything else to look at.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import numpy as np
import polars as pl

from gdiag.ingesters import form_numbers, glued, line_forms, line_kinds
from gdiag.ingesters import text as plain
from gdiag.ingesters.form_numbers import Bytes, Form, Found, Mask, Places
from gdiag.ingesters.line_kinds import Begun, Kind
from gdiag.ingesters.reading import Held

_PROBES: Final = 128
"""Places of a console at which a step line is looked at."""
_ROUNDS: Final = 4
_LEAST: Final = 1 << 16
"""Content with less than so many bytes is made text at once."""


def begin(data: Held, kind: Kind, *, ends: bool = True) -> tuple[Begun | None, pl.DataFrame]:
    """The step lines of the first layout, as far as they are alike to the byte, and all other lines as text.

    Args:
        data: the console.
        kind: what its step lines are.
        ends: whether the last line ended with a newline; else the last two step lines stay text, one of them may be cut.

    Returns:
        What was read, None where nothing was, and `line`, `text` of the lines that were not.
    """
    if len(data) >= _LEAST and (stops := plain.newlines(data)) is not None:
        begun = _begin(data, stops, kind, ends=ends, cleaned=False)
        return begun or (None, plain.lines(data[:]))
    data = plain.clean(data[:])
    if len(data) >= _LEAST and (stops := plain.newlines(data)) is not None:
        begun = _begin(data, stops, kind, ends=ends, cleaned=True)
        return begun or (None, plain.lines_of_clean(data))
    return None, plain.lines_of_clean(data)


def _begin(data: Held, stops: Places, kind: Kind, *, ends: bool, cleaned: bool) -> tuple[Begun, pl.DataFrame] | None:
    """As begin, with the newlines' places; None where nothing is to be gained.

    In data that are not cleaned numbers may yet have the type of their array around them: lines with such are no form's, and
    the others are cleaned for themselves.
    """
    marker = kind.marker.encode()
    first = [
        _text(data, span) for _, span in zip(range(line_kinds.SAMPLES), _step_lines(data, marker, 0), strict=False)
    ]
    parts = glued.parts(first, kind.starts)
    layout = line_kinds.learn(parts[: line_kinds.SAMPLES], kind) if first else None
    if layout is None or plain.clean(said := "\n".join(first).encode()) != said:
        return None
    if data[-1:] != b"\n":
        stops = np.append(stops, len(data))
    starts = np.concatenate([[0], stops[:-1] + 1])
    grammar = line_forms.of(layout, kind.marker)
    probes = [span for span in _probes(data, marker) if line_kinds.begins(_text(data, span), kind)]
    likely = np.zeros(line_forms.LONGEST + 2, dtype=bool)
    likely[[stop - start for start, stop in probes]] = True
    lines = np.flatnonzero(likely[np.minimum(stops - starts, line_forms.LONGEST + 1)])
    view = np.frombuffer(data, dtype=np.uint8)
    found = form_numbers.nothing(len(grammar.named), len(lines))
    at = np.searchsorted(starts[lines], [start for start, _ in probes])
    _read(view, starts[lines], stops[lines], grammar, found, at)
    if not ends:
        found.taken[np.flatnonzero(found.taken)[-2:]] = False
    if found.taken.sum() < 2:
        return None
    taken: Mask | slice = slice(None) if found.taken.all() else found.taken
    columns = [pl.Series("line", lines[taken] + 1)]
    if not layout.bare:
        columns.append(_prefixes(view, starts[lines[taken]], found.prefix[taken]))
    alike = pl.DataFrame([*columns, *line_forms.numbers(grammar, found, taken)])
    rest = _others(data, starts, stops, lines[taken], cleaned=cleaned)
    return None if rest is None else (Begun(layout, alike, first, _last(data, marker)), rest)


def _read(
    view: Bytes, starts: Places, stops: Places, grammar: line_forms.Grammar, found: Found, probes: Places
) -> None:
    """The lines that are of the form of a line looked at; then of one of those that are left, while that takes any."""
    lengths = stops - starts
    left = np.arange(len(lengths))
    with ThreadPoolExecutor(line_forms.THREADS) as threads:
        for _ in range(_ROUNDS):
            few, before = min(line_forms.FEW, len(left)), len(left)
            for length, forms in _forms(view, starts[probes], lengths[probes], grammar).items():
                rows = left[lengths[left] == length]
                if len(rows) >= few:
                    line_forms.read(view, starts, rows, forms, found, threads)
            left = np.flatnonzero(~found.taken)
            if not len(left) or len(left) == before:
                return
            probes = left[:: max(1, len(left) // _PROBES)]


def _forms(view: Bytes, left: Places, lengths: Places, grammar: line_forms.Grammar) -> dict[int, list[Form]]:
    """Forms of the lines that begin there, by their length."""
    forms: dict[int, list[Form]] = {}
    while len(left):
        length = int(lengths[0])
        alike = np.arange(len(left)) == 0
        line = view[left[0] : left[0] + length].tobytes()
        form = line_forms.form_of(line, grammar)
        if form is not None and plain.clean(line) == line:
            forms.setdefault(length, []).append(form)
            alike = lengths == length
            alike[alike] = form_numbers.fits(view, left[alike], form)
        left, lengths = left[~alike], lengths[~alike]
    return forms


def _step_lines(data: Held, marker: bytes, at: int) -> Iterator[tuple[int, int]]:
    """Where lines with the marker begin and end, from a place on."""
    while (at := data.find(marker, at)) >= 0:
        start, stop = data.rfind(b"\n", 0, at) + 1, data.find(b"\n", at)
        at = stop = stop if stop >= 0 else len(data)
        if stop - start <= plain.MAX_LINE:
            yield start, stop


def _probes(data: Held, marker: bytes) -> list[tuple[int, int]]:
    """A step line behind each of many places all through the console, less what stands at its very end."""
    last = len(data) - line_forms.LONGEST
    places = range(0, last, max(1, last // _PROBES))
    found = (next(_step_lines(data, marker, place), (last, last)) for place in places)
    return [
        (start, stop) for start, stop in dict.fromkeys(found) if start < last and stop - start <= line_forms.LONGEST
    ]


def _last(data: Held, marker: bytes) -> str:
    """The last line with the marker that is no longer than a line may be."""
    at = len(data)
    while (at := data.rfind(marker, 0, at)) >= 0:
        start, stop = data.rfind(b"\n", 0, at) + 1, data.find(b"\n", at)
        stop = stop if stop >= 0 else len(data)
        if stop - start <= plain.MAX_LINE:
            return _text(data, (start, stop))
        at = start
    return ""


def _text(data: Held, span: tuple[int, int]) -> str:
    return data[slice(*span)].decode("utf-8", errors="replace")


def _prefixes(view: Bytes, starts: Places, lengths: Places) -> pl.Series:
    """What stands before the marker."""
    if not (lengths == lengths[0]).all():
        wide = int(lengths.max())
        parts = [np.flatnonzero(lengths == length) for length in range(wide + 1)]
        order = np.argsort(np.concatenate(parts), kind="stable")
        texts = [_prefixes(view, starts[rows], lengths[rows]) for rows in parts if len(rows)]
        return pl.concat(texts).gather(order)
    width = int(lengths[0])
    if not width:
        return pl.Series("prefix", [""], dtype=pl.String).new_from_index(0, len(starts))
    rows = np.ndarray(len(view) - width + 1, f"V{width}", view, strides=(1,))[starts]
    cells = rows.view(np.uint8).reshape(-1, width)
    if (cells == cells[0]).all():
        return pl.Series("prefix", [cells[0].tobytes().decode()], dtype=pl.String).new_from_index(0, len(starts))
    import pyarrow as pa  # a tenth of a second that a log without such lines does not pay

    offsets = pa.py_buffer(np.arange(0, (len(starts) + 1) * width, width, dtype=np.int64))
    return pl.Series("prefix", pa.LargeStringArray.from_buffers(len(starts), offsets, pa.py_buffer(rows)))


def _others(data: Held, starts: Places, stops: Places, taken: Places, *, cleaned: bool) -> pl.DataFrame | None:
    """`line`, `text` of the lines not taken; None where they do not come to as many again."""
    free = np.ones(len(starts), dtype=bool)
    free[taken] = False
    if not free.any():
        return plain.lines_of_clean(b"")
    edges = np.diff(free.astype(np.int8), prepend=0, append=0)
    begins, ends = starts[np.flatnonzero(edges == 1)], stops[np.flatnonzero(edges == -1) - 1]
    parts = [data[begin : end + 1] for begin, end in zip(begins.tolist(), ends.tolist(), strict=True)]
    table = (plain.lines_of_clean if cleaned else plain.lines)(b"".join(parts))
    if len(table) != int(free.sum()):
        return None
    return table.with_columns(pl.Series("line", np.flatnonzero(free) + 1))
