"""Console lines read side by side as bytes: lines of one length with the same signs around digits at the same places.

A layout says which numbers a line has and what they are called; here it is held against one line, and every other line that
has its length, its literals and digits where it has digits gives its numbers digit by digit, all lines at once. A number's digits
make a whole number below 2^53 and its power of ten is exact, so that their quotient is what float() makes of the text
(W. D. Clinger, How to read floating point numbers accurately, PLDI 1990). What fits no form is left to `layouts`.
"""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl

from gdiag.ingesters.layouts import Layout, Slot

Bytes = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
Mask = npt.NDArray[np.bool_]

_FEW: Final = 8
"""Lines of a length that are worth a form."""
_LENGTHS: Final = 64
"""Lengths of lines that are looked at, those of most lines first."""
_MISSES: Final = 3
"""Forms that fit under a twentieth of the lines of their length before the others are left."""
_LONGEST: Final = 4096
_AT_ONCE: Final = 1 << 20
"""Bytes of lines that are worked on at a time: few enough for the processor's cache, enough for threads to seldom wait."""
_THREADS: Final = 2
"""Parts worked on side by side: numpy lets another thread go on while it works, but between its calls each waits for the
interpreter, so that more threads would wait for one another; two processors stand in any machine."""
_DIGIT: Final = re.compile("[0-9]")
_NUMBER: Final = re.compile(r"(-?)([0-9]+(?:,[0-9]{3})*)(?:\.([0-9]*))?(?:[eE]([-+]?)([0-9]{1,2}))?")
_MOST: Final = 15
"""Digits of a number: so many make less than 2^53."""
_SHORT: Final = 8
"""Digits whose codes make less than 2^31."""
_EXACT: Final = 22
"""The largest power of ten that a double holds exactly."""
_TENS: Final = 10.0 ** np.arange(_EXACT + 1)
_COMMA: Final = ord(",")
_TOPS: Final = np.uint64(0x8080808080808080)


@dataclass(frozen=True, slots=True)
class _Grammar:
    """A layout as regular expressions."""

    marker: str
    bare: bool
    separator: str | None
    pieces: tuple[re.Pattern[str] | None, ...]
    """Per piece its numbers as groups, None where nobody looks at it."""
    slots: tuple[Slot, ...]


@dataclass(frozen=True, slots=True)
class _Number:
    """Where the digits of a number and of its exponent stand in a line."""

    digits: tuple[int, ...]
    exponent: tuple[int, ...]
    decimals: int
    sign: float
    rising: int
    """Sign of the exponent."""


@dataclass(frozen=True, slots=True)
class _Form:
    """Where one line has literals, digits and numbers."""

    least: Words
    """The line's own bytes, '0' where any digit may stand, in words of eight."""
    room: Words
    """What a byte less its least must not go past, subtracted from 127."""
    length: int
    """Bytes of the line; the last word is filled up."""
    numbers: tuple[_Number, ...]
    prefix: int
    """Bytes before the marker."""


@dataclass(slots=True)
class _Found:
    """What is known of the lines so far; lines that are not taken hold no sense."""

    taken: Mask
    prefix: Places
    values: Floats
    """(numbers, lines)."""


def apply(table: pl.DataFrame, layout: Layout, marker: str) -> tuple[pl.DataFrame | None, pl.DataFrame]:
    """As layouts.apply: the numbers of the lines that fit, None where none does, and the lines that do not."""
    text = table["text"].rechunk().to_arrow()
    _, ends, content = text.buffers()
    if len(table) < _FEW or text.null_count or content is None:
        return None, table
    offsets = np.frombuffer(ends, dtype=np.int64)[text.offset : text.offset + len(text) + 1]
    data = np.frombuffer(content, dtype=np.uint8)
    lengths = np.minimum(np.diff(offsets), _LONGEST + 1)
    counts = np.bincount(lengths, minlength=_LONGEST + 2)[1 : _LONGEST + 1]
    often = [length + 1 for length in np.argsort(-counts)[:_LENGTHS].tolist() if counts[length] >= _FEW]
    grammar = _grammar(layout, marker)
    named = [slot for slot in grammar.slots if slot.name]
    found = _Found(np.zeros(len(table), bool), np.zeros(len(table), np.int64), np.empty((len(named), len(table))))
    with ThreadPoolExecutor(_THREADS) as threads:
        for length in often:
            _of_length(data, offsets, np.flatnonzero(lengths == length), length, grammar, found, threads)
    if not found.taken.any():
        return None, table
    columns = [table["line"]]
    if marker and not layout.bare:
        columns.append(table.select(pl.col("text").str.head(pl.Series(found.prefix)).alias("prefix")).to_series())
    elif "prefix" in table.columns:
        columns.append(table["prefix"])
    for slot, values in zip(named, found.values, strict=True):
        columns.append(pl.Series(slot.name, values * slot.scale if slot.scale != 1.0 else values))
    if found.taken.all():
        return pl.DataFrame(columns), table.clear()
    return pl.DataFrame(columns).filter(pl.Series(found.taken)), table.filter(pl.Series(~found.taken))


def _grammar(layout: Layout, marker: str) -> _Grammar:
    pieces = tuple(_pattern(slots) for slots in layout.pieces)
    slots = tuple(slot for piece in layout.pieces for slot in piece)
    return _Grammar(marker, layout.bare, layout.separator, pieces, slots)


def _pattern(slots: tuple[Slot, ...]) -> re.Pattern[str] | None:
    """A piece's numbers as groups between its literals."""
    if not slots:
        return None
    text = ""
    for slot in slots:
        text += (r"\s+" if slot.before == " " else rf"\s*{re.escape(slot.before)}\s*") + r"(\S+?)"
    return re.compile(rf"{text}\s*{re.escape(slots[-1].after)}\s*")


def _of_length(
    data: Bytes, offsets: Places, rows: Places, length: int, grammar: _Grammar, found: _Found, threads: ThreadPoolExecutor
) -> None:  # fmt: skip
    """Lines of one length, form by form; parts of them side by side, for numpy lets other threads go on."""
    misses = 0
    few = max(1, _AT_ONCE // length)
    while len(rows) >= _FEW and misses < _MISSES:
        start = int(offsets[rows[len(rows) // 2]])
        form = _form(data[start : start + length].tobytes(), grammar)
        if form is None:
            misses += 1
            rows = np.delete(rows, len(rows) // 2)
            continue
        parts = [rows[i : i + few] for i in range(0, len(rows), few)]
        read = partial(_read, data, offsets, form=form, found=found)
        list((threads.map if len(parts) > 1 else map)(read, parts))
        taken = found.taken[rows]
        misses += bool(taken.mean() < 0.05)
        rows = rows[~taken]


def _form(line: bytes, grammar: _Grammar) -> _Form | None:
    """The form of a line, None where it does not fit the layout or has a number that is not read this way."""
    text = line.decode("utf-8", errors="replace")
    prefix = text.find(grammar.marker)
    if prefix < 0 or (prefix and grammar.bare) or not line.isascii():
        return None
    at = prefix + len(grammar.marker)
    pieces = text[at:].split(grammar.separator, len(grammar.pieces) - 1) if grammar.separator else [text[at:]]
    if len(pieces) != len(grammar.pieces):
        return None
    digits = [match.start() for match in _DIGIT.finditer(text, 0, prefix)]
    numbers: list[re.Match[str] | None] = []
    for piece, pattern in zip(pieces, grammar.pieces, strict=True):
        if pattern is None:
            digits += [match.start() for match in _DIGIT.finditer(text, at, at + len(piece))]
        elif (whole := pattern.fullmatch(text, at, at + len(piece))) is None:
            return None
        else:
            numbers += [_NUMBER.fullmatch(text, *whole.span(i)) for i in range(1, pattern.groups + 1)]
        at += len(piece) + len(grammar.separator or "")
    named = [n for n, slot in zip(numbers, grammar.slots, strict=True) if n is not None and slot.name]
    if None in numbers or (grammar.pieces[-1] is None and (grammar.separator or "\n") in pieces[-1]):
        return None
    digits += [at for n in numbers if n is not None for k in (2, 3, 5) for at in range(*n.span(k)) if text[at] != ","]
    return _compiled(line, digits, named, prefix)


def _compiled(line: bytes, digits: list[int], found: list[re.Match[str]], prefix: int) -> _Form | None:
    numbers = tuple(
        _Number(
            tuple(at for k in (2, 3) for at in range(*match.span(k)) if line[at] != _COMMA),
            tuple(range(*match.span(5))),
            len(match[3] or ""),
            -1.0 if match[1] else 1.0,
            -1 if match[4] == "-" else 1,
        )
        for match in found
    )
    if any(len(number.digits) > _MOST for number in numbers):
        return None
    least = np.frombuffer(line.ljust(-(-len(line) // 8) * 8, b"\0"), dtype=np.uint8).copy()
    least[digits] = ord("0")
    room = np.full_like(least, 0x7F)
    room[digits] = 0x7F - 9
    return _Form(least.view("<u8"), room.view("<u8"), len(line), numbers, prefix)


def _read(data: Bytes, offsets: Places, places: Places, form: _Form, found: _Found) -> None:
    """Take those of the lines that are of the form."""
    rows = _bytes(data, offsets[places], form.least.nbytes)
    rows[:, form.length :] = 0
    fits = _fits(rows.view("<u8"), form)
    if not fits.all():
        rows, places = rows[fits], places[fits]
    exact = np.ones(len(rows), dtype=bool)
    for number, values in zip(form.numbers, found.values, strict=True):
        digits = _whole(rows, number.digits) * number.sign
        if not number.exponent:
            values[places] = digits / _TENS[number.decimals]
            continue
        power = number.rising * _whole(rows, number.exponent) - number.decimals
        exact &= np.abs(power) <= _EXACT
        values[places] = digits * _TENS.take(power, mode="clip") / _TENS.take(-power, mode="clip")
    found.taken[places], found.prefix[places] = exact, form.prefix


def _bytes(data: Bytes, starts: Places, width: int) -> Bytes:
    """(lines, width) bytes from each start on; what would stand behind the data's end is NUL."""
    last = len(data) - width
    if last < 0 or starts[-1] > last:
        data = np.concatenate([data[starts[0] :], np.zeros(width, dtype=np.uint8)])
        starts, last = starts - starts[0], len(data) - width
    anywhere = np.ndarray(last + 1, f"V{width}", data, strides=(1,))
    return anywhere[starts].view(np.uint8).reshape(-1, width)


def _whole(rows: Bytes, places: tuple[int, ...]) -> Places:
    """The whole numbers whose digits stand there."""
    if not places:
        return np.zeros(len(rows), dtype=np.int64)
    value: Places = rows[:, places[0]].astype("i4" if len(places) <= _SHORT else "i8")
    for place in places[1:]:
        value *= 10
        value += rows[:, place]
    value -= ord("0") * ((10 ** len(places) - 1) // 9)
    return value


def _fits(words: Words, form: _Form) -> Mask:
    """Whether literals are the form's and digits are digits, eight bytes at a time.

    Less its own literal, or less '0', a byte that fits is 0, or 0 to 9; only what is more carries the top bit or takes it by
    the addition (S. E. Anderson, Bit Twiddling Hacks: a byte greater than n). What a byte carries over into the next one
    changes nothing: its own top bit is then set already.
    """
    odd = words ^ form.least
    over = odd + form.room
    odd |= over
    right: Mask = np.bitwise_or.reduce(odd, axis=1) & _TOPS == 0
    return right
