"""How a delimited table is written, told by its first lines: separator, names, decimal commas, or no header at all."""

from __future__ import annotations

import csv
import re
from typing import Final

from gdiag.ingesters import claims, csv_rows, grouping_marks
from gdiag.ingesters.aliases import claim
from gdiag.ingesters.reading import Options
from gdiag.ingesters.values import whole

_SEPARATORS: Final = (",", "\t", ";", "|")
NUMBER: Final = re.compile(r"^[-+]?(?:\d+(?:\.\d*)?(?:[eE][-+]?\d+)?|\.\d+|nan|inf)$", re.IGNORECASE)
_DIGITS: Final = re.compile(r"[-+]?(?:\d[\d.,]*(?:[eE][-+]?\d+)?|\bnan\b)")
_HEAD: Final = 1 << 16
_FEW: Final = 5
_FRACTIONS: Final = ("loss", "eval_loss", "lr", "grad_norm")


def sniff(head: bytes) -> csv_rows.Shape | None:
    """How the table is written, None when it is none."""
    text = head.decode("utf-8", errors="replace")
    lines = text.splitlines()
    if len(head) >= 60000 and len(lines) > 1:
        lines = lines[:-1]
    numbered = [(i, line) for i, line in enumerate(lines, 1) if line.strip() and not line.startswith("#")][:60]
    if not numbered or numbered[0][1].lstrip()[:1] in ("{", "[", "<"):
        return None
    first, header = numbered[0]
    body = [line for _, line in numbered[1:]]
    if (named := _in_a_comment(lines[: first - 1], header)) is not None:
        body = [header, *body]
        first, header = named
    if _bare(header) and all(_bare(line) for line in body):
        return csv_rows.Shape(_bare_separator(header), ("step", "loss"), 0)
    for separator in sorted(_SEPARATORS, key=header.count, reverse=True):
        names = [name.strip() for name in _cells(header, separator)]
        if len(names) < 2 or any(NUMBER.match(name) for name in names) or not any(names):
            continue
        if any(_spoken(names, _cells(line, separator)) for line in body[:_FEW]):
            continue
        cells = list(csv.reader(body, delimiter=separator))
        widths = [len(row) for row in cells]
        names = _of_all_cells(names, cells)
        # Some writers leave out empty cells at a row's end.
        short = 2 if {"step", "loss"} <= claims.known(names, Options()) else len(names)
        if sum(short <= width <= len(names) for width in widths) >= 0.5 * len(widths) and (
            widths or claims.known(names, Options())
        ):
            comma = grouping_marks.commas_are_decimal(
                cells, likely=separator == ";", fractions={i for i, name in enumerate(names) if _fraction(name)}
            )
            regular = len(widths) > 2 and set(widths[:-1]) == {len(names)}
            return csv_rows.Shape(separator, tuple(names), first, comma, regular)
    return None


def _in_a_comment(above: list[str], row: str) -> tuple[int, str] | None:
    """Line and names of a header behind a `#`, as numpy.savetxt writes it: the last comment above a row of as many numbers."""
    at = next((i for i in reversed(range(len(above))) if above[i].startswith("#")), None)
    if at is None:
        return None
    header = above[at].lstrip("# ")
    for separator in _SEPARATORS:
        names, cells = ([cell.strip() for cell in _cells(line, separator)] for line in (header, row))
        if (
            len(names) == len(cells) > 1
            and all(NUMBER.match(cell) for cell in cells)
            and claims.known(names, Options())
        ):
            return at + 1, header
    return None


def _of_all_cells(names: list[str], rows: list[list[str]]) -> list[str]:
    """The names, and an empty one more where every row has one cell more: a row number at the front, or nothing at the end."""
    rows = rows[:-1] if len(rows) > _FEW else rows
    if len(rows) < _FEW or {len(row) for row in rows} != {len(names) + 1}:
        return names
    if not any(row[-1].strip() for row in rows):
        return [*names, ""]
    numbers, steps = ([whole(row[i].strip("'\" ")) for row in rows] for i in (0, 1))
    first = numbers[0]
    counted = first in (0, 1) and numbers == [*range(first, first + len(rows))]
    # Not where the first name is that of a counter and the second column is none.
    fits = None not in steps or not {"step", "epoch"} & claims.known(names[:1], Options())
    return ["", *names] if counted and fits else names


def misfit(head: bytes) -> str:
    """How many cells stand under how many names where all rows have more than a header that names a step and a loss."""
    lines = [line for line in head.decode("utf-8", errors="replace").splitlines()[:60] if line.strip()]
    if len(lines) < _FEW:
        return ""
    for separator in _SEPARATORS:
        names = _cells(lines[0], separator)
        known = claims.known(names, Options()) if len(names) > 2 else set()
        widths = {len(row) for row in csv.reader(lines[1:-1], delimiter=separator)}
        if (
            known & {"step", "epoch"}
            and known & {"loss", "eval_loss"}
            and len(widths) == 1
            and min(widths) > len(names)
        ):
            return f"{min(widths)} cells in every row under {len(names)} names"
    return ""


def beginning(data: bytes) -> bytes:
    """As much as the formats are told by, and a header of tens of thousands of names whole, with a few rows."""
    end = _HEAD
    if data.count(b"\n", 0, _HEAD) < _FEW:
        at = -1
        for _ in range(_FEW):
            at = data.find(b"\n", at + 1)
            if at < 0:
                return data
        end = at + 1
    return data[:end]


def _fraction(name: str) -> bool:
    found = claim(name)
    return "loss" in name.lower() or (found is not None and found.canonical in _FRACTIONS)


def _spoken(names: list[str], row: list[str]) -> bool:
    """Whether cells of the would-be header are the row below with other numbers.

    `epoch: 1, lr: 3e-05, …` above `epoch: 2, lr: 7e-05, …` is a console that puts commas between its fields.
    """
    if len(names) != len(row):
        return False
    return any(
        _DIGITS.search(name)
        and re.search("[A-Za-z]", name)
        and _DIGITS.sub("#", name) == _DIGITS.sub("#", cell.strip())
        for name, cell in zip(names, row, strict=True)
    )


def _cells(line: str, separator: str) -> list[str]:
    return next(csv.reader([line], delimiter=separator), [])


def _bare(line: str) -> bool:
    cells = line.replace(",", " ").split()
    return len(cells) == 2 and all(NUMBER.match(cell) for cell in cells)


def _bare_separator(line: str) -> str:
    return "," if "," in line else "\t" if "\t" in line else " "
