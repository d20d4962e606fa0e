"""Numbers of console lines that are alike, digit by digit and all lines at once.

A form says where a line has literals and where it has digits. A number's digits make a whole number below 2^53 and its power
of ten is exact, so that their quotient is what float() makes of the text (W. D. Clinger, How to read floating point numbers
accurately, PLDI 1990). Digits that are the same in all lines of a part (a batch size, the millions of a counter) are added
once and not line by line.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

MOST: Final = 15
"""Digits of a number: so many make less than 2^53."""
_SHORT: Final = 8
"""Digits whose codes make less than 2^31."""
_EXACT: Final = 22
"""The largest power of ten that a double holds exactly."""
_TENS: Final = 10.0 ** np.arange(_EXACT + 1)
_SOME: Final = 16
"""Lines of a part that tell which form most of it has."""
_ZERO: Final = ord("0")
_TOPS: Final = np.uint64(0x8080808080808080)


@dataclass(frozen=True, slots=True)
class Number:
    """Where the digits of a number and of its exponent stand in a line."""

    digits: tuple[int, ...]
    exponent: tuple[int, ...]
    decimals: int
    sign: float
    rising: int
    """Sign of the exponent."""


@dataclass(frozen=True, slots=True)
class Form:
    """Where one line has literals, digits and numbers."""

    least: Bytes
    """The line's own bytes, '0' where any digit may stand; filled up to words of eight."""
    room: Bytes
    """What a byte less its least must not go past, subtracted from 127."""
    length: int
    """Bytes of the line."""
    numbers: tuple[Number, ...]
    prefix: int
    """Bytes before the marker."""


@dataclass(slots=True)
class Found:
    """What is known of the lines so far; lines that are not taken hold no sense."""

    taken: Mask
    prefix: Places
    values: Floats
    """(numbers, lines)."""


def nothing(numbers: int, lines: int) -> Found:
    """Before any line is read."""
    return Found(np.zeros(lines, bool), np.zeros(lines, np.int64), np.empty((numbers, lines)))


def form(line: bytes, digits: list[int], numbers: tuple[Number, ...], prefix: int) -> Form:
    """The form of a line that has digits at those places."""
    least = np.frombuffer(line.ljust(-(-len(line) // 8) * 8, b"\0"), dtype=np.uint8).copy()
    least[digits] = _ZERO
    room = np.full_like(least, 0x7F)
    room[digits] = 0x7F - 9
    return Form(least, room, len(line), numbers, prefix)


def read(data: Bytes, starts: Places, places: Places, forms: Sequence[Form], found: Found) -> None:
    """Take those of the lines that are of one of the forms.

    Args:
        data: where all lines stand.
        starts: where each line begins.
        places: the lines to look at, all of the forms' length, rising.
        forms: what they are held against; all have one length.
        found: where the numbers go.
    """
    rows = _bytes(data, starts[places], len(forms[0].least))
    rows[:, forms[0].length :] = 0
    some = rows[:: max(1, len(rows) // _SOME)]
    left = np.ones(len(rows), dtype=bool)
    for form in sorted(forms, key=lambda form: -int(_fits(some, form).sum())) if len(forms) > 1 else forms:
        mine = np.flatnonzero(left & _fits(rows, form, _apart(form, forms)))
        taken = rows if len(mine) == len(rows) else rows[mine]
        low, high = _span(taken, form)
        if not _all_fit(low, high, form):
            right = _fits(taken, form)
            mine, taken = mine[right], taken[right]
            low, high = _span(taken, form)
        _take(taken, places[mine], low, high, form, found)
        left[mine] = False
        if not left.any():
            return


def _apart(form: Form, forms: Sequence[Form]) -> Places:
    """The first word of eight bytes in which the form differs from each of the others."""
    others = np.array([other.least for other in forms]).view("<u8") != form.least.view("<u8")
    return np.unique(others.argmax(axis=1)[others.any(axis=1)])


def _take(rows: Bytes, places: Places, low: Bytes, high: Bytes, form: Form, found: Found) -> None:
    """The numbers of lines of the form."""
    exact: Mask | bool = True
    for number, values in zip(form.numbers, found.values, strict=True):
        digits = _whole(rows, number.digits, low, high)
        if not number.exponent:
            values[places] = digits / (number.sign * _TENS[number.decimals])
            continue
        power = number.rising * _whole(rows, number.exponent, low, high) - number.decimals
        exact &= np.abs(power) <= _EXACT
        values[places] = digits * (number.sign * _TENS).take(power, mode="clip") / _TENS.take(-power, mode="clip")
    found.taken[places], found.prefix[places] = exact, form.prefix


def fits(data: Bytes, starts: Places, form: Form) -> Mask:
    """Which of the lines that begin there, all of the form's length, are of the form."""
    rows = _bytes(data, starts, len(form.least))
    rows[:, form.length :] = 0
    return _fits(rows, form)


def _bytes(data: Bytes, starts: Places, width: int) -> Bytes:
    """(lines, width) bytes from each start on, the starts rising; what would stand behind the data's end is NUL."""
    last = len(data) - width
    inside = int(np.searchsorted(starts, last, side="right"))
    parts = []
    if inside:
        anywhere = np.ndarray(last + 1, f"V{width}", data, strides=(1,))
        parts.append(anywhere[starts[:inside]].view(np.uint8).reshape(-1, width))
    for start in starts[inside:].tolist():
        row = np.zeros((1, width), dtype=np.uint8)
        row[0, : len(data) - start] = data[start:]
        parts.append(row)
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _span(rows: Bytes, form: Form) -> tuple[Bytes, Bytes]:
    """The least and the greatest byte of all lines at every place; of no lines what no form has."""
    rows = rows[:, : form.length]
    low: Bytes = np.minimum.reduce(rows, axis=0, initial=0xFF)
    high: Bytes = np.maximum.reduce(rows, axis=0, initial=0)
    return low, high


def _all_fit(low: Bytes, high: Bytes, form: Form) -> bool:
    """Whether every line has the form's literals and digits where it has digits."""
    least, room = form.least[: form.length], form.room[: form.length]
    return bool((low >= least).all() and (high <= least + (0x7F - room)).all())


def _whole(rows: Bytes, places: tuple[int, ...], low: Bytes, high: Bytes) -> Places | np.int64:
    """The whole numbers whose digits stand there; one where all lines have the same."""
    fixed = 0
    value: Places | None = None
    due = 0
    for power, place in zip(range(len(places) - 1, -1, -1), places, strict=True):
        if low[place] == high[place]:
            fixed += (int(low[place]) - _ZERO) * 10**power
            continue
        fixed -= _ZERO * 10**power
        if value is None:
            value = rows[:, place].astype("i4" if len(places) <= _SHORT else "i8")
        else:
            value *= 10 ** (due - power)
            value += rows[:, place]
        due = power
    if value is None:
        return np.int64(fixed)
    if due:
        value *= 10**due
    value += fixed
    return value


def _fits(rows: Bytes, form: Form, words: Places | slice = slice(None)) -> Mask:
    """Whether literals are the form's and digits are digits, eight bytes at a time, in all words or some.

    Less its own literal, or less '0', a byte that fits is 0, or 0 to 9; only what is more carries the top bit or takes it by
    the addition (S. E. Anderson, Bit Twiddling Hacks: a byte greater than n). What a byte carries over into the next one
    changes nothing: its own top bit is then set already.
    """
    odd = rows.view("<u8")[:, words] ^ form.least.view("<u8")[words]
    over = odd + form.room.view("<u8")[words]
    odd |= over
    right: Mask = np.bitwise_or.reduce(odd, axis=1) & _TOPS == 0
    return right
