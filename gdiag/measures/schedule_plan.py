"""From pieces of a learning-rate column to the plan behind them: which breaks belong to it and which do not."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np

from gdiag.measures.shapes import Fit, Floats, fit_decay

Shape = Literal[
    "constant", "linear", "cosine", "wsd", "step", "inverse-sqrt", "exponential", "polynomial", "restarts", "warmup",
    "range-test", "unknown",
]  # fmt: skip

CONSTANT = 0.01
"""Relative range within which a piece counts as level."""
MOST_ROWS = 2000
"""Rows that the shape fits look at; longer pieces are thinned evenly."""
WORST_FIT = 0.03
"""Residual, relative to the range, beyond which no shape is named."""
LEAST_HOLD = 0.04
"""Share of a piece that stays at the peak in a warmup-stable-decay schedule."""
NEW_CYCLE = 0.1
"""Least rise, relative to the peak, that begins a new cycle."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What was made of the rows after the warm-up; all positions are indices into the arrays given."""

    shape: Shape
    start: int
    stop: int
    """The rows that the shape was read from."""
    fit: Fit | None = None
    decay_start: int | None = None
    decay_end: int | None = None
    planned: tuple[int, ...] = ()
    """Changes i → i+1 that belong to the schedule."""
    unexplained: tuple[tuple[int, int | None], ...] = ()
    """Changes that do not, with the last row before the value returns."""


def plan(x: Floats, y: Floats, rise: int, jumps: list[int], quantum: float) -> Plan:
    """The plan of the rows from `rise` on, broken at `jumps` (changes i → i+1)."""
    cycles = sorted({*(i for i in jumps if y[i + 1] > y[i]), *_slow_rises(y, rise, jumps)})
    if cycles and _all_restarts(x, y, rise, cycles, quantum):
        first = _piece(x, y, rise, cycles[0] + 1, quantum)
        drops = tuple((i, None) for i in jumps if i not in cycles)
        return Plan("restarts", rise, len(y), first.fit, first.decay_start, first.decay_end, tuple(cycles), drops)
    # A rise that begins no cycle, out of a sudden fall: a schedule begun again in its middle.
    edges = [rise, *(i + 1 for i in cycles)]
    falls = {_fall(y, a, b) for a, b in pairwise(edges) if _fall(y, a, b) < b - 1}
    jumps = sorted({*jumps, *falls})
    pairs = _pairs(x, y, jumps)
    answered = {back for _, back in pairs if back is not None}
    level = _levels(y, rise, jumps, quantum)
    planned, unexplained = [], []
    for i, back in pairs:
        if i in answered:
            continue
        if back is None and y[i + 1] < y[i] and level[i]:
            planned.append(i)
        else:
            unexplained.append((i, back))
    if level and all(level.values()):
        shape: Shape = "step" if planned else "constant"
        stop = len(y) if planned or not unexplained else unexplained[0][0] + 1
        begin = planned[0] if planned else None
        return Plan(shape, rise, stop, None, begin, None, tuple(planned), tuple(unexplained))
    start, stop = _telling(rise, [i for i, _ in unexplained] + planned, len(y))
    found = _piece(x, y, start, stop, quantum)
    return Plan(
        found.shape, start, stop, found.fit, found.decay_start, found.decay_end, tuple(planned), tuple(unexplained)
    )


def carried_on(x: Floats, y: Floats, i: int, k: int) -> float:
    """The value at row `k` if the curve had gone on from row `i` as in the rows before it."""
    slope = float(np.median(np.diff(y[max(0, i - 3) : i + 1]) / np.diff(x[max(0, i - 3) : i + 1]))) if i >= 2 else 0.0
    return max(0.0, float(y[i]) + slope * float(x[k] - x[i]))


def _pairs(x: Floats, y: Floats, jumps: list[int]) -> list[tuple[int, int | None]]:
    """Every jump with the jump that undoes it: (i, row before the return) or (i, None)."""
    found: list[tuple[int, int | None]] = []
    for position, i in enumerate(jumps):
        back = None
        for k in jumps[position + 1 :]:
            wanted = carried_on(x, y, i, k + 1)
            off, size, level = abs(y[k + 1] - wanted), abs(y[i + 1] - y[i]), abs(y[i])
            opposite = (y[k + 1] - y[k]) * (y[i + 1] - y[i]) < 0
            if opposite and off <= max(0.15 * size, 0.0) and off <= 0.5 * level:
                back = k
                break
        found.append((i, back))
    return found


def _levels(y: Floats, rise: int, jumps: list[int], quantum: float) -> dict[int, bool]:
    """For every jump, whether the rate is level on both sides of it."""
    edges = [rise, *(i + 1 for i in jumps), len(y)]
    flat = [_is_level(y[a:b], quantum) for a, b in pairwise(edges)]
    return {i: flat[k] and flat[k + 1] for k, i in enumerate(jumps)}


def _is_level(piece: Floats, quantum: float) -> bool:
    return len(piece) == 0 or float(np.ptp(piece)) <= max(CONSTANT * float(piece.max()), 1.01 * quantum)


def _telling(rise: int, breaks: list[int], rows: int) -> tuple[int, int]:
    """The rows that show the plan: the piece before the first break unless it is short, else the longest."""
    edges = [rise, *sorted(i + 1 for i in breaks), rows]
    if edges[1] - rise >= max(10, 0.05 * rows):
        return rise, edges[1]
    return max(pairwise(edges), key=lambda e: e[1] - e[0])


def _slow_rises(y: Floats, rise: int, jumps: list[int]) -> list[int]:
    """Rows after which the rate climbs again over several rows by more than a tenth of its peak."""
    peak = float(y[rise:].max())
    climbing = np.concatenate(([False], np.diff(y[rise:]) > 0, [False]))
    climbing[[i - rise + 1 for i in jumps if i >= rise]] = False
    edges = np.flatnonzero(np.diff(climbing.astype(np.int8))) + rise
    found = []
    for i, k in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        if k > i + 1 and y[k] - y[i] > NEW_CYCLE * peak and i - 1 not in jumps:
            found.append(i)
    return found


def _all_restarts(x: Floats, y: Floats, rise: int, cycles: list[int], quantum: float) -> bool:
    """Whether every cycle begins near the end of the one before and lasts as restarts do."""
    edges = [rise, *(i + 1 for i in cycles), len(y)]
    first_peak = float(y[rise : edges[1]].max())
    for a, b, c in zip(edges[:-2], edges[1:-1], edges[2:], strict=True):
        before, peak = float(y[_fall(y, a, b)]), float(y[a:b].max())
        after = float(y[b:c].max())
        # One last row of a cycle is too little to know how high it goes.
        if before > 0.35 * peak or after > 1.05 * first_peak or (c - b > 2 and after < 0.2 * peak) or b - a < 3:
            return False
    lengths = np.diff(x[[rise, *(i + 1 for i in cycles)]])
    if len(lengths) >= 2:
        ratios = lengths[1:] / lengths[:-1]
        return float(np.ptp(ratios)) <= 0.15 * float(ratios.max()) and float(ratios.min()) > 0.9
    last = _fall(y, rise, edges[1])
    if last < edges[1] - 1 and y[last] > 0.15 * first_peak:
        return False
    end = _piece(x, y, rise, edges[1], quantum)
    gap = float(np.median(np.diff(x)))
    cycle = float(lengths[0])
    if end.decay_end is not None:
        return float(x[edges[1]] - x[end.decay_end]) <= 2.5 * gap + 0.15 * cycle
    if end.fit is not None and end.fit.shape == "cosine" and end.fit.end is not None:
        return abs(end.fit.end - float(x[edges[1]])) <= 2.5 * gap + 0.03 * cycle
    return float(y[edges[1] - 1]) <= 0.15 * first_peak


def _fall(y: Floats, a: int, b: int) -> int:
    """The last row of a cycle that is not part of a sudden fall in its last three rows."""
    for k in range(max(a + 3, b - 3), b):
        if y[k] < 0.75 * y[k - 1] and y[k - 1] - y[k] > 5 * abs(y[k - 2] - y[k - 1]):
            return k - 1
    return b - 1


def _piece(x: Floats, y: Floats, start: int, stop: int, quantum: float) -> Plan:
    """The shape of rows without a break."""
    piece = y[start:stop]
    if _is_level(piece, quantum) or len(piece) < 4:
        return Plan("constant" if _is_level(piece, quantum) else "unknown", start, stop)
    peak, low = float(piece.max()), float(piece.min())
    near = 0.51 * quantum
    at_low = piece <= low + near + 1e-9 * peak
    end = len(piece) - 1
    stays = int(np.argmin(at_low[::-1])) if not at_low.all() else len(piece)
    if at_low[-1] and stays >= 3 and (stays > 0.02 * len(piece) or low > 0.001 * peak):
        end = len(piece) - stays
    at_peak = piece >= peak * (1 - 1e-5) - near
    hold = int(np.flatnonzero(at_peak)[-1])
    whole = _fit(x[start:stop], piece, 0, end, float(x[0]), end < len(piece) - 1, quantum)
    held = x[start + hold] - x[start] >= LEAST_HOLD * (x[stop - 1] - x[start]) and hold >= 2
    chosen, begin = whole, 0
    shape: Shape
    if held and end - hold >= 2:
        tail = _fit(x[start:stop], piece, hold, end, float(x[start + hold]), end < len(piece) - 1, quantum)
        weight = ((end - hold) / max(1, end)) ** 0.5
        if tail.error * weight * 2 + 1e-3 < whole.error:
            chosen, begin = tail, hold
    if chosen.error > WORST_FIT + quantum / max(peak - low, quantum):
        shape = "wsd" if begin and chosen.error < 3 * WORST_FIT else "unknown"
    elif begin:
        shape = "wsd"
    else:
        shape = _named(chosen)
    return Plan(shape, start, stop, chosen, start + begin, start + end if end < len(piece) - 1 else None)


def _named(fit: Fit) -> Shape:
    match fit.shape:
        case "one-minus-sqrt" | "quadratic":
            return "polynomial"
        case shape:
            return shape


def _fit(x: Floats, y: Floats, begin: int, end: int, origin: float, reaches: bool, quantum: float) -> Fit:
    rows = np.arange(begin, end + 1)
    if len(rows) > MOST_ROWS:
        rows = rows[np.linspace(0, len(rows) - 1, MOST_ROWS).astype(np.int64)]
    if len(rows) < 3:
        return Fit("unknown", 0.0)
    return fit_decay(x[rows], y[rows], origin=origin, reaches_floor=reaches, quantum=quantum)
