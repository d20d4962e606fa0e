"""Rows of collective benchmarks in blocks of test runs over the same sizes, so that many runs are measured at once.

A log of sweeps holds hundreds of thousands of test runs in a handful of layouts (the same sizes, sides and cycles in the
same order). What is measured of each run is computed over the rows of a block, a run per line of a matrix.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from gdiag.measures.curves import Floats
from gdiag.measures.segments import Ints

FIGURES: Final = ("size", "in_place", "time", "cpu_time", "algbw", "busbw", "wrong", "cycle")
_CELLS: Final = 1 << 20
"""Rows of a block: its matrices stay small beside the table."""

Measured = dict[str, NDArray[Any]]
"""Name → a value per test run."""


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Test runs of one layout."""

    numbers: Ints
    """The runs' numbers in the table."""
    size: Ints
    in_place: NDArray[np.bool_]
    cycle: Ints
    cpu_time: NDArray[np.bool_]
    """One value per row of a run, the same for all runs."""
    rows: Ints
    """Rows of the table, a run per line."""
    arrays: dict[str, NDArray[Any]]

    def values(self, name: str) -> Floats:
        """A column of figures, a run per line."""
        found: Floats = self.arrays[name][self.rows]
        return found


@dataclass(eq=False)
class SweepRows:
    """The rows of all test runs in file order, which sweeps hold spans of: a frame of its own for each would cost more than its rows."""

    frame: pl.DataFrame
    """source, section, line, size, in_place, time, algbw, busbw, wrong, cycle and more; one row per side."""
    starts: Ints
    """First row of each test run, ascending."""
    known: dict[Any, Measured] = field(default_factory=dict)
    """What was measured already."""
    told: dict[Any, dict[int, Any]] = field(default_factory=dict)
    """What was looked up already, by the number of the run."""

    @cached_property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """The columns of figures as arrays, null as NaN."""
        return {name: self.frame[name].to_numpy() for name in FIGURES}

    def span(self, number: int) -> slice:
        """Rows of a test run."""
        last = self.starts[number + 1] if number + 1 < len(self.starts) else self.frame.height
        return slice(int(self.starts[number]), int(last))

    @cached_property
    def layouts(self) -> list[Ints]:
        """Numbers of the runs of each layout."""
        sides = 4 * self.arrays["cycle"] + 2 * self.arrays["in_place"] + self.arrays["cpu_time"]
        size = self.arrays["size"]
        alike: dict[tuple[bytes, bytes], list[int]] = {}
        for number in range(len(self.starts)):
            span = self.span(number)
            alike.setdefault((size[span].tobytes(), sides[span].tobytes()), []).append(number)
        return [np.array(numbers) for numbers in alike.values()]

    def measured(self, key: Any, measure: Callable[[Block], Measured]) -> Measured:
        """What `measure` finds in blocks, by the number of the run; kept under `key`."""
        if key not in self.known:
            found: Measured = {}
            for numbers in self.layouts:
                for block in self._blocks(numbers):
                    # Times and bandwidths may be logged as 0, figures may be as large as floats go.
                    with np.errstate(all="ignore"):
                        own = measure(block)
                    for name, values in own.items():
                        if name not in found:
                            found[name] = np.zeros(len(self.starts), dtype=values.dtype)
                        found[name][block.numbers] = values
            self.known[key] = found
        return self.known[key]

    def _blocks(self, numbers: Ints) -> list[Block]:
        span = self.span(int(numbers[0]))
        width = span.stop - span.start
        alike = (self.arrays[name][span] for name in ("size", "in_place", "cycle", "cpu_time"))
        size, in_place, cycle, cpu_time = alike
        at_once = max(1, _CELLS // width)
        parts = [numbers[i : i + at_once] for i in range(0, len(numbers), at_once)]
        return [
            Block(part, size, in_place, cycle, cpu_time, self.starts[part][:, None] + np.arange(width), self.arrays)
            for part in parts
        ]


def middle(values: Floats, among: Ints | None = None) -> Floats:
    """Median of each line, NaN with a NaN, 0 of no values. among: of each line's so many smallest values alone."""
    width = values.shape[-1]
    if not width:
        return np.zeros(values.shape[:-1])
    ordered = np.sort(values, axis=-1)
    count = np.full(values.shape[:-1], width) if among is None else among
    low, high = np.maximum(count - 1, 0) // 2, np.minimum(count // 2, width - 1)
    a, b = (np.take_along_axis(ordered, at[..., None], axis=-1)[..., 0] for at in (low, high))
    found = np.where(low == high, a, (a + b) / 2)
    return np.where(np.isnan(ordered[..., -1]), np.nan, found)
