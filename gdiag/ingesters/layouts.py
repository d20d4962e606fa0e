"""Layouts of regular console lines: learnt from a few lines, tried on all of them by splitting at literals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

import polars as pl

from gdiag.ingesters import tokens

_SEPARATORS: Final = (" | ", " - ", ", ", "\t", "  ", " ")
"""Tried in this order where a grammar names none: one split is cheaper than one per label."""
_LONGEST: Final = 1 << 14
"""Characters of a line that a layout is learned from."""
_NESTED: Final = 24
_NUMBERS: Final = 300
"""Numbers of a piece and of a line at most: what has more is many lines run together, not one."""


@dataclass(frozen=True, slots=True)
class Slot:
    """A number of a layout: the literals before and behind it and what it is called ('' = not kept)."""

    before: str
    after: str
    name: str
    scale: float
    padded: bool
    """Blanks around the number may vary: strip them."""
    commas: bool


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the numbers of a kind of line stand."""

    separator: str | None
    pieces: tuple[tuple[Slot, ...], ...]
    """Per piece of the line its slots; a piece without slots is not looked at."""
    bare: bool = False
    """Nothing stands before the marker."""
    late: bool = False
    """The separator may stand before the marker too."""

    @property
    def end(self) -> str:
        """What closes the line behind its last number."""
        return self.pieces[-1][-1].after if self.pieces[-1] else ""

    @property
    def names(self) -> list[str]:
        """Names of its numbers, in order."""
        return [slot.name for slots in self.pieces for slot in slots if slot.name]


def learn(
    samples: Sequence[str], separator: str | None, first: Sequence[str], skip: Sequence[str] = ()
) -> Layout | None:
    """The layout of the first sample; the others tell which nameless numbers never change.

    Args:
        samples: lines, the text behind the marker.
        separator: between fields; None lets the layout find one that leaves every name with its number.
        first: names of the first numbers; the others have their own.
        skip: names that nobody wants: what stands alone in its piece is not read.
    """
    found = _find(samples, separator, first)
    if found is None or not skip or found.separator is None:
        return found
    last = len(found.pieces) - 1
    wanted = tuple(
        () if 0 < i < last and len(slots) == 1 and slots[0].name in skip else slots
        for i, slots in enumerate(found.pieces)
    )
    return replace(found, pieces=wanted)


def _find(samples: Sequence[str], separator: str | None, first: Sequence[str]) -> Layout | None:
    samples = [text for text in samples if len(text) <= _LONGEST]
    if not samples:
        return None
    whole = _learn(samples, separator, first)
    if separator is not None or whole is None:
        return whole
    for candidate in _SEPARATORS:
        count = samples[0].count(candidate)
        if count and all(text.count(candidate) == count for text in samples):
            found = _learn(samples, candidate, first)
            if found is not None and found.names == whole.names and len(found.pieces) <= 3 * len(whole.names) + 2:
                return found
    return whole


def _learn(samples: Sequence[str], separator: str | None, first: Sequence[str]) -> Layout | None:
    literals = lru_cache(tokens.literals)  # most pieces stand in many lines
    parsed = [literals(piece) for piece in tokens.pieces(samples[0], separator)]
    shape = [[part.strip() for part in between] for between, _ in parsed]
    alike: list[list[list[str]]] = []
    for text in samples:
        other = [literals(piece) for piece in tokens.pieces(text, separator)]
        if [[part.strip() for part in between] for between, _ in other] == shape:
            alike.append([numbers for _, numbers in other])
    seen: dict[str, int] = {}
    slots: list[tuple[Slot, ...]] = []
    for index, (between, numbers) in enumerate(parsed):
        named = first if not slots else ()
        glue, kept = _merge_constants(between, numbers, [line[index] for line in alike], len(named))
        slots.append(tuple(_slots(glue, kept, named, seen)))
    if max(map(len, slots)) > _NESTED or sum(map(len, slots)) > _NUMBERS:
        return None
    if not any(slots) or [slot.name for slot in slots[0][: len(first)]] != [*first]:
        return None
    return Layout(separator, tuple(slots))


def _merge_constants(
    between: list[str], numbers: list[str], lines: list[list[str]], given: int
) -> tuple[list[str], list[list[str]]]:
    """The literals around the numbers to read, and these numbers' values in all alike lines.

    A nameless number that never changes (the total in `12/500`) becomes part of the literal; the `given` first have names.
    """
    glue = [between[0]]
    kept: list[list[str]] = []
    for position, number in enumerate(numbers):
        values = [line[position] for line in lines]
        named = position < max(1, given) or bool(tokens.later_label(glue[-1]))
        if not named and len(values) > 1 and len(set(values)) == 1:
            glue[-1] += number + between[position + 1]
            continue
        kept.append(values)
        glue.append(between[position + 1])
    return glue, kept


def _slots(glue: list[str], kept: list[list[str]], first: Sequence[str], seen: dict[str, int]) -> Iterator[Slot]:
    for position, values in enumerate(kept):
        before, after = glue[position], glue[position + 1]
        name = first[position] if position < len(first) else (tokens.later_label if position else tokens.label)(before)
        if not name or name.lower() == "speed":
            name = tokens.pace(after) or name
        if name:
            seen[name] = seen.get(name, 0) + 1
            name = name if seen[name] == 1 else f"{name} #{seen[name]}"
        exact = len(kept) == 1 and before == before.lstrip() and after == after.strip() and not before.endswith("  ")
        yield Slot(
            before=before if exact else before.strip() or (" " if position and before else ""),
            after=after.strip(),
            name=name,
            scale=tokens.scale(after),
            padded=not exact,
            commas=any("," in value for value in values),
        )


def apply(table: pl.DataFrame, layout: Layout, marker: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Rows that fit the layout, as numbers, and the lines that do not.

    Args:
        table: `line`, `text` and perhaps `prefix`; with a marker, `text` is the whole line.
        layout: what the lines are held against.
        marker: what stands before the first number; the text before it becomes `prefix`.
    """
    frame = _split(table, layout, marker)
    numbers: list[pl.Expr] = []
    fits: list[pl.Expr] = []
    for index, slots in enumerate(layout.pieces):
        frame = _cut_piece(frame, index, slots)
        for position, slot in enumerate(slots):
            last = position == len(slots) - 1
            text, fit = _number_text(pl.col(_source(index, position, len(slots))), slot, begins=not position, ends=last)
            numbers.append(text.cast(pl.Float64, strict=False).alias(f"v{index}_{position}"))
            if fit is not None:
                fits.append(fit)
    if layout.separator is not None and not layout.pieces[-1]:
        fits.append(~pl.col(f"field_{len(layout.pieces) - 1}").str.contains(layout.separator, literal=True))
    values = [f"v{i}_{p}" for i, slots in enumerate(layout.pieces) for p in range(len(slots))]
    slots_of = dict(zip(values, (slot for slots in layout.pieces for slot in slots), strict=True))
    kept = [name for name in frame.collect_schema().names() if name in ("line", "prefix")]
    done = frame.select(*kept, *numbers, *(fit.alias(f"fit{i}") for i, fit in enumerate(fits))).collect()
    whole = all(done[f"fit{i}"].all(ignore_nulls=False) for i in range(len(fits)))
    rest = table.clear()
    if not whole or any(done[value].null_count() for value in values):
        checks = [pl.col(f"fit{i}") for i in range(len(fits))] + [pl.col(value).is_not_null() for value in values]
        fitting = done.select(pl.all_horizontal(checks).fill_null(False).alias("fit"))["fit"]
        done, rest = done.filter(fitting), table.filter(~fitting)
    named = [
        (pl.col(value) * slot.scale if slot.scale != 1.0 else pl.col(value)).alias(slot.name)
        for value, slot in slots_of.items()
        if slot.name
    ]
    return done.select(*kept, *named), rest


def may_fit(table: pl.DataFrame, layout: Layout) -> bool:
    """Whether any line has as many separators as the layout, which is told faster than whether one fits."""
    if layout.separator is None:
        return bool(len(table))
    counts = table["text"].str.count_matches(layout.separator, literal=True)
    return bool((counts >= len(layout.pieces) - 1).any())


def _split(table: pl.DataFrame, layout: Layout, marker: str) -> pl.LazyFrame:
    """`line`, `prefix` where there is one, and the pieces as field_0, field_1, …"""
    keys = [name for name in ("line", "prefix") if name in table.columns]
    count = len(layout.pieces)
    frame = table.lazy().select(*keys, pl.col("text").alias("field_0"))
    at_marker = pl.col("field_0").str.splitn(marker, 2).struct.rename_fields(["prefix", "field_0"]).alias("p")
    if layout.bare:
        frame = frame.with_columns(pl.col("field_0").str.strip_prefix(marker))
    elif marker and (layout.late or count == 1):
        frame = frame.select("line", at_marker).unnest("p")
        keys = ["line", "prefix"]
    if layout.separator is not None and count > 1:
        frame = frame.select(*keys, pl.col("field_0").str.splitn(layout.separator, count).alias("p")).unnest("p")
        if marker and not layout.bare and not layout.late:  # the marker stands in the first piece: less to copy
            frame = frame.select("line", *(f"field_{i}" for i in range(1, count)), at_marker).unnest("p")
    return frame


def _source(index: int, position: int, count: int) -> str:
    if count == 1:
        return f"field_{index}"
    return f"rest_{index}" if position == count - 1 else f"slot_{index}_{position}"


def _cut_piece(frame: pl.LazyFrame, index: int, slots: tuple[Slot, ...]) -> pl.LazyFrame:
    """A piece with several numbers cut at the literals between them, one after the other."""
    for position in range(1, len(slots)):
        text = pl.col(f"field_{index}" if position == 1 else f"rest_{index}")
        if slots[position].before == " ":
            text = text.str.strip_chars_start()
        elif position == 1 and slots[0].before and slots[1].before in slots[0].before:
            text = text.str.strip_chars_start().str.strip_prefix(slots[0].before)
        parts = text.str.splitn(slots[position].before, 2)
        frame = frame.with_columns(parts.alias("parts")).with_columns(
            pl.col("parts").struct.field("field_0").alias(f"slot_{index}_{position - 1}"),
            pl.col("parts").struct.field("field_1").alias(f"rest_{index}"),
        )
    return frame


def _number_text(text: pl.Expr, slot: Slot, *, begins: bool, ends: bool) -> tuple[pl.Expr, pl.Expr | None]:
    """The text of the number alone, and whether what must follow it does."""
    fit: pl.Expr | None = None
    if slot.padded:
        text = text.str.strip_chars()
    if begins and slot.before:
        text = text.str.strip_prefix(slot.before)
    if ends and slot.after:
        fit = text.str.ends_with(slot.after)
        text = text.str.strip_suffix(slot.after)
    if slot.padded and (slot.before or slot.after):
        text = text.str.strip_chars()
    if slot.commas:
        text = text.str.replace_all(",", "", literal=True)
    return text, fit
