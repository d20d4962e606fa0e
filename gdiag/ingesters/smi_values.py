"""Columns of nvidia-smi rows that have neither a header nor units, told by their values where these leave no choice.

What the driver's own formats give away: power has two decimals, SM clocks are multiples of 15 MHz (V100: 7.5), indices count
up within a reading, a highest clock, a limit and a memory size never change, a temperature moves by a few degrees between
two samples, a utilization does not.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

LEAST_ROWS: Final = 16
_DECIMALS: Final = re.compile(r"\d+\.\d\d")
_NUMBER: Final = re.compile(r"\d+(?:\.\d+)?")

Values = NDArray[np.float64]


def named(rows: Sequence[Sequence[str]], kinds: Sequence[str]) -> list[str]:
    """A --query-gpu name for each column, "" where its values could be several things.

    `kinds` are the names that are plain from the cells alone (timestamp, uuid, name, …), "" or "bare" for numbers.
    """
    names = [kind if kind != "bare" else "" for kind in kinds]
    if len(rows) < LEAST_ROWS:
        return names
    cells = {i: [row[i] for row in rows] for i, name in enumerate(names) if not name}
    columns = {
        i: np.array([float(c) for c in found]) for i, found in cells.items() if all(map(_NUMBER.fullmatch, found))
    }
    decimals = {i: v for i, v in columns.items() if all(map(_DECIMALS.fullmatch, cells[i]))}
    whole = {i: v for i, v in columns.items() if i not in decimals and not np.any(v % 1)}
    index = next((i for i, v in whole.items() if _counts_up(v)), None)
    if index is not None:
        names[index] = "index"
        del whole[index]
    gpus = int(columns[index].max()) + 1 if index is not None else 1
    for found in (_power(decimals), _clocks(whole), _memory(whole), _shares(whole, gpus)):
        for i, name in found.items():
            names[i] = names[i] or name
    return names


def is_highest(clocks: Sequence[str], others: Sequence[str]) -> bool:
    """Whether the second of two columns of clocks never changes and is what the first reaches at most."""
    first, second = ({float(m[0]) for c in column if (m := _NUMBER.match(c))} for column in (clocks, others))
    return len(first) > 1 and len(second) == 1 and max(first) in second


def _counts_up(values: Values) -> bool:
    """0, 1, …, n-1 again and again, rows that are missing aside."""
    top = int(values.max())
    if top > 31 or values.min() != 0 or (top == 0 and len(values) < 200):
        return False
    steps = (np.diff(values) % (top + 1)) == 1 % (top + 1)
    return bool(top > 0 and steps.mean() > 0.95)


def _power(decimals: dict[int, Values]) -> dict[int, str]:
    """The draw varies; a limit is at or above it in nearly all rows and takes few values."""
    limits = [i for i, v in decimals.items() if len(np.unique(v)) <= 4 and v.max() >= 50]
    draws = [i for i in decimals if i not in limits]
    if len(draws) != 1 or len(limits) > 1:
        return {draws[0]: "power.draw"} if len(draws) == 1 else {}
    above = [i for i in limits if np.mean(decimals[i] * 1.1 >= decimals[draws[0]]) > 0.9]
    return {draws[0]: "power.draw"} | dict.fromkeys(above, "power.limit")


def _clocks(whole: dict[int, Values]) -> dict[int, str]:
    """One column of SM clocks, and one of its highest where that never changes and is never passed."""
    likely = {i: v for i, v in whole.items() if v.min() >= 100 and 600 <= v.max() <= 3600}
    moving = [i for i, v in likely.items() if len(np.unique(v)) >= 3 and np.mean(v % 15 <= 8) > 0.95 and _stepped(v)]
    if len(moving) != 1:
        return {}
    top = whole[moving[0]].max()
    highest = [i for i, v in likely.items() if len(np.unique(v)) == 1 and top <= v[0] <= 1.6 * top]
    return {moving[0]: "clocks.sm"} | (dict.fromkeys(highest, "clocks.max.sm") if len(highest) == 1 else {})


def _stepped(values: Values) -> bool:
    return bool(np.mean((values % 15 == 0) | (np.abs(values % 15 - 7.5) <= 0.5)) > 0.95)


def _memory(whole: dict[int, Values]) -> dict[int, str]:
    """A size of at least 8 GB that never changes and, before it, how much of it is used."""
    sizes = [i for i, v in whole.items() if len(np.unique(v)) == 1 and v[0] >= 7500]
    if len(sizes) != 1:
        return {}
    size = whole[sizes[0]][0]
    used = [i for i, v in whole.items() if i != sizes[0] and abs(i - sizes[0]) == 1 and 0.2 * size < v.max() <= size]
    return {sizes[0]: "memory.total"} | (dict.fromkeys(used, "memory.used") if len(used) == 1 else {})


def _shares(whole: dict[int, Values], gpus: int) -> dict[int, str]:
    """Temperatures and utilizations; of two side by side the first is the GPU's own."""
    found: dict[int, str] = {}
    warm: list[int] = []
    busy: list[int] = []
    for i, values in whole.items():
        if values.max() > 110 or len(np.unique(values)) < 3:
            continue
        moved = np.abs(values[gpus:] - values[:-gpus]) if len(values) > gpus else np.empty(0)
        if values.min() >= 15 and values.max() >= 30 and len(moved) and np.quantile(moved, 0.9) <= 6:
            warm.append(i)
        elif values.max() <= 100 and (values.min() <= 5 or np.median(values) >= 95):
            busy.append(i)
    for places, first, second in (
        (warm, "temperature.gpu", "temperature.memory"), (busy, "utilization.gpu", "utilization.memory"),
    ):  # fmt: skip
        if len(places) == 1 or (len(places) == 2 and places[1] - places[0] == 1):
            found |= dict(zip(places, (first, second), strict=False))
    return found
