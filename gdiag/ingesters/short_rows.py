"""Rows of a table that have fewer cells than there are names: which cells are missing.

Most writers leave out the last ones. One that leaves out empty cells wherever they stand (training rows without the
evaluation's columns) would put what follows under the wrong names: the values of whole rows tell.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from gdiag.ingesters.values import as_number

_NEAR: Final = math.log(100.0)
"""Logarithm of the factor by which values of one column may lie outside what whole rows of it hold."""
_FEW: Final = 3
"""Whole rows that tell what a column holds."""
_LOOKED: Final = 2000
"""Rows of a width that are looked at."""

Row = Sequence[str]
Span = tuple[float, float]


def filled(rows: Sequence[list[str]], width: int) -> tuple[list[list[str]], list[str]]:
    """The rows with a cell for every name, empty where cells are missing, and notes about what was found.

    Args:
        rows: at most `width` cells each.
        width: how many names there are.
    """
    widths = {len(row) for row in rows}
    if widths <= {width}:
        return list(rows), []
    whole = [row for row in rows if len(row) == width]
    notes = []
    if not whole:
        notes.append(
            f"no row has more than {max(widths)} cells under {width} names: the last names are taken to be without values"
        )
    held = spans(whole, width) if len(whole) >= _FEW else [None] * width
    shorter: dict[int, list[list[str]]] = {short: [] for short in sorted(widths - {width})}
    for row in rows:
        if len(row) < width:
            shorter[len(row)].append(row)
    places: dict[int, tuple[int, int]] = {}
    for short, own in shorter.items():
        places[short] = found = gap(own, held)
        many = "1 row has" if len(own) == 1 else f"{len(own)} rows have"
        if found[0] < short:
            notes.append(
                f"{many} {short} cells under {width} names: the values tell that those behind the {_nth(found[0])} are missing"
            )
        elif found[1] < short:
            notes.append(
                f"{many} {short} cells under {width} names, and which are missing cannot be told: the first {found[1]} are used"
            )
    return [row if len(row) == width else _padded(row, *places[len(row)], width) for row in rows], notes


def _padded(row: list[str], place: int, kept: int, width: int) -> list[str]:
    row = row[:kept]
    return [*row[:place], *[""] * (width - len(row)), *row[place:]]


def _nth(place: int) -> str:
    return f"{place}{'th' if 10 <= place % 100 <= 20 else {1: 'st', 2: 'nd', 3: 'rd'}.get(place % 10, 'th')}"


def gap(short: Sequence[Row], held: Sequence[Span | None]) -> tuple[int, int]:
    """Where cells are missing in rows of one width, and how many cells of them can be used.

    The first is the width where the last ones are missing, which is taken to be so where nothing speaks against it.

    Args:
        short: rows of one width.
        held: what each column of rows with a cell for every name holds, as `spans` gives it.
    """
    width = len(short[0])
    missing = len(held) - width
    found = spans(short, width)
    # How far the values of each cell are off those of the name that it would stand under, before the gap and behind it.
    before = [_distance(found[i], held[i]) for i in range(width)]
    behind = [_distance(found[i], held[i + missing]) for i in range(width)]
    odd = next((i for i, far in enumerate(before) if far > _NEAR), None)
    if odd is None:
        return width, width
    # Behind the first cell that does not fit its name the gap cannot begin.
    apart = [(before[:place] + behind[place:], place) for place in range(1, odd + 1)]
    fits = sorted((sum(far), place) for far, place in apart if max(far) <= _NEAR)
    if not fits or (len(fits) > 1 and fits[0][0] == fits[1][0]):
        return width, odd
    return fits[0][1], width


def spans(rows: Sequence[Row], width: int) -> list[Span | None]:
    """Smallest and largest logarithm of the numbers in each of so many columns."""
    return [_span([row[i] for row in rows[:_LOOKED]]) for i in range(width)]


def _span(cells: Sequence[str]) -> Span | None:
    """Smallest and largest logarithm of the numbers, None where there are no numbers but 0."""
    numbers = [number for cell in cells if (number := as_number(cell)) is not None]
    logs = [math.log(abs(number)) for number in numbers if number and math.isfinite(number)]
    return (min(logs), max(logs)) if logs else None


def _distance(a: Span | None, b: Span | None) -> float:
    """Logarithm of the factor between two ranges, 0 where they overlap or one is not known."""
    return 0.0 if a is None or b is None else max(a[0] - b[1], b[0] - a[1], 0.0)
