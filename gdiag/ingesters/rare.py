"""Columns that next to no row fills: where every row brings names of its own, a table of them all grows with their square."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from gdiag.ingesters.lists import Cell
from gdiag.ingesters.values import escape

MOST: Final = 1 << 26
"""Cells of a table: half a gigabyte of numbers."""
_SHARE: Final = 256
"""A column that fewer than one of so many rows fills may be left out of a table that would have more."""


def left_out(counts: Mapping[str, int], rows: int, most: int) -> list[str]:
    """The columns without which a table has at most so many cells, as far as next to no row fills them.

    Args:
        counts: values that each column has.
        rows: rows of the table.
        most: cells that it may have.

    Returns:
        The emptiest columns; of those with as many values, the last ones.
    """
    over = len(counts) - most // rows if rows else 0
    if over <= 0:
        return []
    rare = [name for name, count in counts.items() if count * _SHARE < rows]
    return sorted(rare, key=counts.__getitem__, reverse=True)[-over:]


@dataclass(slots=True)
class Aside:
    """Cells of columns that next to no row of a piece fills, kept out of its table until all rows are known.

    More than one of _SHARE cells of the largest table are not kept: where so many are so rare, the whole is larger than that.
    """

    cells: dict[str, tuple[list[int], list[Cell]]] = field(default_factory=dict)
    """Column → rows of the whole and their cells."""
    count: int = 0
    lost: dict[str, None] = field(default_factory=dict)
    """Columns of which cells were not kept."""

    def put(self, name: str, rows: Sequence[int], cells: Sequence[Cell]) -> None:
        """What one piece holds of a column."""
        if self.count + len(rows) > MOST // _SHARE:
            self.lost[name] = None
            return
        places, found = self.cells.setdefault(name, ([], []))
        places += rows
        found += cells
        self.count += len(rows)


def note(names: Sequence[str]) -> list[str]:
    """The sentence about columns that were left out."""
    if not names:
        return []
    shown = ", ".join(escape(name, 40) for name in names[:4]) + (", …" if len(names) > 4 else "")
    return [
        f"{len(names):,} columns are not read whole, for a table of all that its rows name would be too large and fewer "
        f"than one of {_SHARE} rows fills them: {shown}"
    ]
