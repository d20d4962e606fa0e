"""Regular console lines (a step, then `key separator number` again and again) read by column instead of by line.

Lines of one program are alike: the same labels in the same places around other numbers. A layout is learnt from one line,
tried on all lines at once by splitting at its literals, and kept for those that fit. What fits no layout (cut, glued or
rare lines) is read one by one. Splitting at literals is several times faster than a regular expression with a group for
every number.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import polars as pl

from gdiag.ingesters.text import NUMBER

_TOKEN: Final = re.compile(rf"(?<![\w.]){NUMBER}")
_LAST: Final = re.compile(rf"{NUMBER}$")
_UNIT: Final = re.compile(r"^(?:[A-Za-zµ%]+(?:/[A-Za-z]+)*|\s(?:ms|us|s|sec|seconds|[KMGT]i?B)(?![\w/:=]))?")
_WORD_AFTER: Final = re.compile(r"\s+[A-Za-z][\w ]*[:=]")
_SCALES: Final = {
    "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9, "s": 1.0, "sec": 1.0, "seconds": 1.0, "min": 60.0,
    "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30, "TiB": 2.0**40, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12,
    "K": 1e3, "M": 1e6, "G": 1e9, "B": 1e9, "T": 1e12,
}  # fmt: skip
"""Units glued to a number → factor to s or B, and SI suffixes. (GB as printed by torch is 2**30 or 1e9: within 7 %.)"""
_EDGE: Final = " \t:=|,;()[]{}<>'\"~-"
_OPEN: Final = tuple("0123456789.,eE+-")
"""Characters after which a number may go on."""
_LAYOUTS: Final = 16
_STEP: Final = "step"
SHAPE: Final = r"[\s:=#\[]*\d"
"""A number behind the word that introduces it."""


@dataclass(frozen=True, slots=True)
class _Slot:
    """A number of a layout: the literals before and behind it and what it is called ('' = not kept)."""

    before: str
    after: str
    name: str
    scale: float
    padded: bool
    """Blanks around the number may vary: strip them."""
    commas: bool


@dataclass(frozen=True, slots=True)
class _Layout:
    pieces: tuple[tuple[_Slot, ...], ...]
    """Per piece of the line its slots; a piece without slots is not looked at."""
    count: int

    @property
    def end(self) -> str:
        """What closes the line behind its last number."""
        return self.pieces[-1][-1].after if self.pieces[-1] else ""

    @property
    def last(self) -> str:
        """The name of the last number."""
        return self.pieces[-1][-1].name if self.pieces[-1] else ""


@dataclass(slots=True)
class Fields:
    """What regular lines gave."""

    wide: pl.DataFrame
    """`line`, `step` and a Float64 column per label; times in s and sizes in B where the unit stands behind the number."""
    left: pl.DataFrame
    """`line`, `text` of the lines in which no step with a value was found."""
    cut: list[int] = field(default_factory=list)
    """Line numbers of lines that end early: their last field is not used."""


def label(literal: str) -> str:
    """The name in a literal that stands before a number: '' when there is none."""
    text = re.sub(r"^[/\d.,:%]*\d\S*\s+", "", literal.strip())
    name = re.split(r"[|,;](?=\s)|\s{2,}|\s[-/]\s|\t", text.strip(_EDGE + "/#"))[-1]
    if name.count("(") > name.count(")"):
        name += ")"
    name = name.strip(_EDGE.replace(")", "") + "/#").lstrip(")")
    return re.sub(r"\s+", " ", name) if re.search(r"[A-Za-z]", name) else ""


def read(
    table: pl.DataFrame, separator: str | None, *, ends: bool = True, first: str = _STEP, shape: str = SHAPE
) -> Fields:
    """Read lines whose text starts behind the word that introduces the step number.

    Args:
        table: `line`, `text`.
        separator: literal between fields (' | '), or None when labels alone tell fields apart.
        ends: whether the file's last line ended with a newline; else its last number may be cut.
        first: name of the first number; '' when its label names it.
        shape: what the text of a step line begins with; other lines are left.
    """
    begins = re.compile(shape)
    parts: list[pl.DataFrame] = []
    main: _Layout | None = None
    cut: list[int] = []
    rest = table
    misses = 0
    while len(rest) and len(parts) < _LAYOUTS and misses < 4:
        at = (len(rest) * misses) // 4
        samples = rest["text"].slice(at, 32).to_list()
        layout = _learn(samples, separator, first) if begins.match(samples[0]) else None
        found = _apply(rest, layout, separator) if layout is not None else None
        if layout is None or found is None or not len(found[0]) or (len(found[0]) == 1 and (parts or len(rest) > 8)):
            misses += 1
            continue
        misses = 0
        got, rest = found
        main = main or layout
        if main.end and not layout.end and layout.last in got.columns:
            cut.extend(got["line"].to_list())
            got = got.drop(layout.last)
        parts.append(got)
    longest = max((list(p.columns) for p in parts), key=len, default=[])
    slow, left, short = _one_by_one(rest, separator, first, longest[1:], main.end if main else "", begins)
    if slow is not None:
        parts.append(slow)
    wide = pl.concat(parts, how="diagonal").sort("line", maintain_order=True) if parts else _none(first)
    fields = Fields(wide, left, sorted(cut + short))
    return fields if ends else _distrust_last(fields, table)


def _none(first: str) -> pl.DataFrame:
    return pl.DataFrame(schema={"line": pl.Int64, first: pl.Float64})


def _literals(text: str) -> tuple[list[str], list[str]]:
    """The text between the numbers (one more than numbers) and the numbers."""
    literals: list[str] = []
    numbers: list[str] = []
    end = 0
    for match in _TOKEN.finditer(text):
        if (
            match[0][-1].isalpha()
            and _WORD_AFTER.match(text, match.end())
            and text[: match.start()].rstrip()[-1:] not in (":", "=")
        ):
            continue  # the word in "number of nan iterations: 0"
        literals.append(text[end : match.start()])
        numbers.append(match[0])
        end = match.end()
    literals.append(text[end:])
    return literals, numbers


def _split(text: str, separator: str | None) -> list[str]:
    return text.split(separator) if separator else [text]


def _learn(samples: Sequence[str], separator: str | None, first: str) -> _Layout | None:
    """The layout of the first sample; numbers that never change in its like and bear no name become literals."""
    pieces = [_literals(piece) for piece in _split(samples[0], separator)]
    shape = [[part.strip() for part in literals] for literals, _ in pieces]
    alike: list[list[list[str]]] = []
    for text in samples:
        other = [_literals(piece) for piece in _split(text, separator)]
        if [[part.strip() for part in literals] for literals, _ in other] == shape:
            alike.append([numbers for _, numbers in other])
    seen: dict[str, int] = {}
    slots: list[tuple[_Slot, ...]] = []
    for index, (literals, numbers) in enumerate(pieces):
        kept, glue = _merge_constants(literals, numbers, [line[index] for line in alike])
        slots.append(tuple(_slots(glue, kept, first if not slots else "", seen)))
    if not slots or not any(slots) or (first and (not slots[0] or slots[0][0].name != first)):
        return None
    return _Layout(tuple(slots), len(pieces))


def _merge_constants(
    literals: list[str], numbers: list[str], lines: list[list[str]]
) -> tuple[list[list[str]], list[str]]:
    """Numbers to read (with their values in all alike lines) and the literals around them."""
    glue = [literals[0]]
    kept: list[list[str]] = []
    for position, number in enumerate(numbers):
        values = [line[position] for line in lines]
        named = position == 0 or bool(label(_UNIT.sub("", glue[-1])))
        if not named and len(values) > 1 and len(set(values)) == 1:
            glue[-1] += number + literals[position + 1]
            continue
        kept.append(values)
        glue.append(literals[position + 1])
    return kept, glue


def _slots(glue: list[str], kept: list[list[str]], first: str, seen: dict[str, int]) -> list[_Slot]:
    slots: list[_Slot] = []
    for position, values in enumerate(kept):
        before, after = glue[position], glue[position + 1]
        name = first if first and not slots else label(before if position == 0 else _UNIT.sub("", before))
        if name:
            seen[name] = seen.get(name, 0) + 1
            if seen[name] > 1:
                name = f"{name} #{seen[name]}"
        unit = _UNIT.match(after)
        scale = _SCALES.get(unit[0].strip(), 1.0) if unit else 1.0
        exact = len(kept) == 1 and before == before.lstrip() and after == after.strip() and not before.endswith("  ")
        slots.append(
            _Slot(
                before=before if exact else before.strip() or (" " if position and before else ""),
                after=after.strip(),
                name=name,
                scale=scale,
                padded=not exact,
                commas=any("," in v for v in values),
            )
        )
    return slots


def _apply(table: pl.DataFrame, layout: _Layout, separator: str | None) -> tuple[pl.DataFrame, pl.DataFrame] | None:
    """Rows that fit the layout, as numbers, and the lines that do not."""
    if separator and layout.count > 1:
        pieces = table.select(pl.col("text").str.splitn(separator, layout.count)).unnest("text")
    else:
        pieces = table.select(pl.col("text").alias("field_0"))
    for index, slots in enumerate(layout.pieces):
        for position in range(1, len(slots)):
            source = f"field_{index}" if position == 1 else f"rest_{index}"
            text = pl.col(source)
            if slots[position].before == " ":
                text = text.str.strip_chars_start()
            elif position == 1 and slots[0].before and slots[0].before.find(slots[1].before) >= 0:
                text = text.str.strip_chars_start().str.strip_prefix(slots[0].before)
            parts = pieces.select(text.str.splitn(slots[position].before, 2).alias("p")).unnest("p")
            pieces = pieces.with_columns(
                parts["field_0"].alias(f"slot_{index}_{position - 1}"), parts["field_1"].alias(f"rest_{index}")
            )
    numbers: list[pl.Expr] = []
    fits: list[pl.Expr] = []
    for index, slots in enumerate(layout.pieces):
        for position, slot in enumerate(slots):
            source = (
                f"field_{index}"
                if len(slots) == 1
                else f"rest_{index}"
                if position == len(slots) - 1
                else f"slot_{index}_{position}"
            )
            last = position == len(slots) - 1
            text, fit = _number_text(pl.col(source), slot, strip_before=position == 0, strip_after=last)
            numbers.append((text.cast(pl.Float64, strict=False)).alias(f"v{index}_{position}"))
            if fit is not None:
                fits.append(fit.alias(f"f{index}_{position}"))
    values = pieces.select(numbers + fits)
    values = values.with_columns(
        pl.all_horizontal(
            [pl.col(e).is_not_null() for e in values.columns if e[0] == "v"]
            + [pl.col(e) for e in values.columns if e[0] == "f"]
        ).fill_null(False).alias("ok")
    )  # fmt: skip
    names = {
        f"v{i}_{p}": slot for i, slots in enumerate(layout.pieces) for p, slot in enumerate(slots) if slot.name
    }  # fmt: skip
    wide = values.select(
        table["line"],
        "ok",
        *[(pl.col(c) * s.scale if s.scale != 1.0 else pl.col(c)).alias(s.name) for c, s in names.items()],
    )
    return wide.filter("ok").drop("ok"), table.filter(~values["ok"])


def _number_text(
    text: pl.Expr, slot: _Slot, *, strip_before: bool, strip_after: bool
) -> tuple[pl.Expr, pl.Expr | None]:
    """The text of the number alone, and whether what must follow it does."""
    fit: pl.Expr | None = None
    if slot.padded:
        text = text.str.strip_chars()
    if strip_before and slot.before:
        text = text.str.strip_prefix(slot.before)
    if strip_after and slot.after:
        fit = text.str.ends_with(slot.after)
        text = text.str.strip_suffix(slot.after)
    if slot.padded:
        text = text.str.strip_chars()
    if slot.commas:
        text = text.str.replace_all(",", "", literal=True)
    return text, fit


def pairs(text: str, separator: str | None, first: str = "") -> list[tuple[str, float]]:
    """Names and numbers of one line, in order; the first number is called `first` where that is given."""
    found: list[tuple[str, float]] = []
    for piece in _split(text, separator):
        literals, numbers = _literals(piece)
        for position, number in enumerate(numbers):
            before, after = literals[position], literals[position + 1]
            name = first if first and not found else label(before if position == 0 else _UNIT.sub("", before))
            if not name:
                continue
            unit = _UNIT.match(after)
            scale = _SCALES.get(unit[0].strip(), 1.0) if unit else 1.0
            found.append((name, float(number.replace(",", "")) * scale))
    return found


def _one_by_one(
    table: pl.DataFrame, separator: str | None, first: str, known: list[str], end: str, begins: re.Pattern[str]
) -> tuple[pl.DataFrame | None, pl.DataFrame, list[int]]:
    """Lines of no layout: rows of known names, lines without any, numbers of the lines that are cut.

    A cut line lacks what closes its like, or its names are the first few of theirs: its last number is then not trusted.
    """
    rows: list[dict[str, float]] = []
    left: list[tuple[int, str]] = []
    cut: list[int] = []
    names = set(known)
    for line, text in table.iter_rows():
        found = pairs(text, separator, first) if begins.match(text) else []
        if _is_cut(text, found, known, end):
            cut.append(line)
            found = found[:-1] if text.rstrip()[-1:] in _OPEN else found
        row: dict[str, float] = {}
        for name, value in found:
            if name == first or not names or name in names:
                row.setdefault(name, value)
        if len(row) > 1 and (not first or first in row):
            rows.append({"line": line, **row})
        else:
            left.append((line, text))
    rest = pl.DataFrame(left, schema={"line": pl.Int64, "text": pl.String}, orient="row")
    if not rows:
        return None, rest, cut
    schema = {"line": pl.Int64, **{name: pl.Float64 for row in rows for name in row if name != "line"}}
    return pl.DataFrame(rows, schema=schema), rest, cut


def _is_cut(text: str, found: list[tuple[str, float]], known: list[str], end: str) -> bool:
    """Whether a line stops before its like do."""
    order = [name for name, _ in found]
    if len(order) < 2 or len(order) >= len(known):
        return False
    if end:
        return not text.rstrip().endswith(end)
    last = _LAST.search(text.rstrip())
    return order == known[: len(order)] and last is not None and float(last[0].replace(",", "")) == found[-1][1]


def _distrust_last(fields: Fields, table: pl.DataFrame) -> Fields:
    """Drop the last number of a file that ends in mid-line when it is shorter than that of the line before."""
    if len(table) < 2 or not len(fields.wide) or fields.wide["line"][-1] != table["line"][-1]:
        return fields
    now, before = table["text"][-1], table["text"][-2]
    found = pairs(now, None, _STEP)
    if not found or not now.rstrip().endswith(_OPEN) or len(now.rstrip()) >= len(before.rstrip()):
        return fields
    name = found[-1][0]
    if name not in fields.wide.columns:
        return fields
    end = fields.wide["line"][-1]
    fields.wide = fields.wide.with_columns(
        pl.when(pl.col("line") == end).then(None).otherwise(pl.col(name)).alias(name)
    )
    fields.cut.append(end)
    return fields
