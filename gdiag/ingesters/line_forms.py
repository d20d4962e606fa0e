"""Console lines read side by side as bytes: lines of one length with the same signs around digits at the same places.

A layout says which numbers a line has and what they are called; here it is held against one line, and every other line that
has its length, its literals and digits where it has digits gives its numbers (`form_numbers`). What fits no form is left to
`layouts`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
import polars as pl

from gdiag.ingesters import form_numbers
from gdiag.ingesters.form_numbers import Bytes, Form, Found, Mask, Number, Places
from gdiag.ingesters.layouts import Layout, Slot

FEW: Final = 8
"""Lines of a length that are worth a form."""
LONGEST: Final = 4096
_LENGTHS: Final = 64
"""Lengths of lines that are looked at, those of most lines first."""
_MISSES: Final = 3
"""Forms that fit under a twentieth of the lines of their length before the others are left."""
_AT_ONCE: Final = 1 << 21
"""Bytes of lines that are worked on at a time: enough for two threads to seldom wait for one another, few enough to stay near."""
THREADS: Final = 2
"""Parts worked on side by side: numpy lets another thread go on while it works, but between its calls each waits for the
interpreter, so that more threads would wait for one another; two processors stand in any machine."""
_DIGIT: Final = re.compile("[0-9]")
_NUMBER: Final = re.compile(r"(-?)([0-9]+(?:,[0-9]{3})*)(?:\.([0-9]*))?(?:[eE]([-+]?)([0-9]{1,2}))?")
_COMMA: Final = ord(",")


@dataclass(frozen=True, slots=True)
class Grammar:
    """A layout as regular expressions."""

    marker: str
    bare: bool
    separator: str | None
    pieces: tuple[re.Pattern[str] | None, ...]
    """Per piece its numbers as groups, None where nobody looks at it."""
    slots: tuple[Slot, ...]

    @property
    def named(self) -> list[Slot]:
        """The numbers that somebody wants."""
        return [slot for slot in self.slots if slot.name]


def apply(table: pl.DataFrame, layout: Layout, marker: str) -> tuple[pl.DataFrame | None, pl.DataFrame]:
    """As layouts.apply: the numbers of the lines that fit, None where none does, and the lines that do not."""
    text = table["text"].rechunk().to_arrow()
    _, ends, content = text.buffers()
    if len(table) < FEW or text.null_count or content is None:
        return None, table
    offsets = np.frombuffer(ends, dtype=np.int64)[text.offset : text.offset + len(text) + 1]
    data = np.frombuffer(content, dtype=np.uint8)
    lengths = np.minimum(np.diff(offsets), LONGEST + 1)
    counts = np.bincount(lengths, minlength=LONGEST + 2)[1 : LONGEST + 1]
    often = [length + 1 for length in np.argsort(-counts)[:_LENGTHS].tolist() if counts[length] >= FEW]
    grammar = of(layout, marker)
    found = form_numbers.nothing(len(grammar.named), len(table))
    with ThreadPoolExecutor(THREADS) as threads:
        for length in often:
            _of_length(data, offsets, np.flatnonzero(lengths == length), length, grammar, found, threads)
    if not found.taken.any():
        return None, table
    whole = found.taken.all()
    kept = table if whole else table.filter(pl.Series(found.taken))
    columns = [kept["line"]]
    if marker and not layout.bare:
        head = pl.Series(found.prefix[found.taken])
        columns.append(kept.select(pl.col("text").str.head(head).alias("prefix")).to_series())
    elif "prefix" in table.columns:
        columns.append(kept["prefix"])
    columns += numbers(grammar, found, slice(None) if whole else found.taken)
    return pl.DataFrame(columns), table.clear() if whole else table.filter(pl.Series(~found.taken))


def numbers(grammar: Grammar, found: Found, taken: Mask | slice) -> Iterable[pl.Series]:
    """The numbers of the lines taken, by their names."""
    for slot, values in zip(grammar.named, found.values, strict=True):
        kept = values[taken]
        yield pl.Series(slot.name, kept * slot.scale if slot.scale != 1.0 else kept)


def of(layout: Layout, marker: str) -> Grammar:
    """The layout as what a line is held against."""
    pieces = tuple(_pattern(slots) for slots in layout.pieces)
    slots = tuple(slot for piece in layout.pieces for slot in piece)
    return Grammar(marker, layout.bare, layout.separator, pieces, slots)


def _pattern(slots: tuple[Slot, ...]) -> re.Pattern[str] | None:
    """A piece's numbers as groups between its literals."""
    if not slots:
        return None
    text = ""
    for slot in slots:
        text += (r"\s+" if slot.before == " " else rf"\s*{re.escape(slot.before)}\s*") + r"(\S+?)"
    return re.compile(rf"{text}\s*{re.escape(slots[-1].after)}\s*")


def _of_length(
    data: Bytes, offsets: Places, rows: Places, length: int, grammar: Grammar, found: Found, threads: ThreadPoolExecutor
) -> None:  # fmt: skip
    """Lines of one length, form by form."""
    misses = 0
    while len(rows) >= FEW and misses < _MISSES:
        start = int(offsets[rows[len(rows) // 2]])
        form = form_of(data[start : start + length].tobytes(), grammar)
        if form is None:
            misses += 1
            rows = np.delete(rows, len(rows) // 2)
            continue
        read(data, offsets, rows, [form], found, threads)
        taken = found.taken[rows]
        misses += bool(taken.mean() < 0.05)
        rows = rows[~taken]


def read(
    data: Bytes, starts: Places, rows: Places, forms: Sequence[Form], found: Found, threads: ThreadPoolExecutor
) -> None:
    """Lines of one length, parts of them side by side, for numpy lets other threads go on."""
    few = max(1, _AT_ONCE // forms[0].length)
    parts = [rows[i : i + few] for i in range(0, len(rows), few)]
    part = partial(form_numbers.read, data, starts, forms=forms, found=found)
    list((threads.map if len(parts) > 1 else map)(part, parts))


def form_of(line: bytes, grammar: Grammar) -> Form | None:
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
    made = [_number(line, match) for match in numbers if match is not None]
    if len(made) < len(numbers) or (grammar.pieces[-1] is None and (grammar.separator or "\n") in pieces[-1]):
        return None
    digits += [at for number in made for at in (*number.digits, *number.exponent)]
    wanted = tuple(number for number, slot in zip(made, grammar.slots, strict=True) if slot.name)
    if any(len(number.digits) > form_numbers.MOST for number in wanted):
        return None
    return form_numbers.form(line, digits, wanted, prefix)


def _number(line: bytes, match: re.Match[str]) -> Number:
    digits: Iterable[int] = (*range(*match.span(2)), *range(*match.span(3)))
    if "," in match[2]:
        digits = (at for at in digits if line[at] != _COMMA)
    return Number(
        tuple(digits),
        tuple(range(*match.span(5))),
        len(match[3] or ""),
        -1.0 if match[1] else 1.0,
        -1 if match[4] == "-" else 1,
    )
