"""Sacred `metrics.json`: every metric with its own steps, timestamps and values."""

from __future__ import annotations

import bisect
import itertools
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

from gdiag.errors import InputError
from gdiag.ingesters import columns, flat, json_salvage
from gdiag.ingesters.reading import Input, Options, Reading

FORMAT: Final = "sacred"
_Row = tuple[float, int]
"""A step, and how many values the metric had at it before: a run that was taken up has some twice."""


def recognise(given: Input) -> float:
    """Metrics with `steps`, beside `timestamps` or `values` further on."""
    head = given.head
    return (
        0.98
        if head.lstrip()[:1] == b"{"
        and re.search(rb'"steps"\s*:\s*\[', head[:4096])
        and (b'"timestamps"' in head or b'"values"' in head)
        else 0.0
    )


def read(given: Input, options: Options) -> Reading:
    """A row per step at which any metric was logged; of a cut or damaged file those before the damage.

    Raises:
        InputError: damaged from the start, or without metrics.
    """
    document, rejects = json_salvage.document(given)
    series = {
        str(name): found
        for name, found in (document.items() if isinstance(document, dict) else ())
        if isinstance(found, dict) and isinstance(found.get("steps"), list) and isinstance(found.get("values"), list)
    }
    rows: dict[_Row, dict[str, flat.Cell]] = {}
    unread = 0
    places: dict[str, list[_Row]] = {}
    for name, found in series.items():
        places[name], lost = _collect(rows, name, found)
        unread += lost
    if not rows:
        raise InputError(f"{given.path} holds no metrics with steps")
    longest = max(places.values(), key=len)
    frame = flat.to_frame([rows[place] for place in _in_order(rows, longest)])
    what = "1 value" if unread == 1 else f"{unread} values"
    notes = [f"{what} without a number or a step left out"] if unread and rejects is None else []
    return columns.reading(given.path, FORMAT, frame, options, rejects=rejects, notes=notes, line=None)


def _collect(rows: dict[_Row, dict[str, flat.Cell]], name: str, found: Mapping[str, Any]) -> tuple[list[_Row], int]:
    """Puts one metric's values on their steps; returns the rows that it fills in its order, and how many values it could not."""
    steps, values, stamps = found["steps"], found["values"], found.get("timestamps")
    clocks = stamps if isinstance(stamps, list) else []
    seen: Counter[float] = Counter()
    places: list[_Row] = []
    unread = abs(len(steps) - len(values))
    for i, (step, value) in enumerate(zip(map(_plain, steps), map(_plain, values), strict=False)):
        if not isinstance(step, int | float) or not (isinstance(value, int | float | str) or value is None):
            unread += 1
            continue
        row = rows.setdefault((step, seen[step]), {"step": step})
        places.append((step, seen[step]))
        seen[step] += 1
        row[name] = value
        if i < len(clocks) and isinstance(clocks[i], str):
            row["timestamp"] = clocks[i]
    return places, unread


def _in_order(rows: Iterable[_Row], longest: list[_Row]) -> list[_Row]:
    """The rows as the longest metric has them, which may take up an earlier step; all others behind the last step before theirs."""
    known = {place: float(i) for i, place in enumerate(longest)}
    reached = list(itertools.accumulate((step for step, _ in longest), max))

    def key(place: _Row) -> tuple[float, float, int]:
        return known.get(place, bisect.bisect_right(reached, place[0]) - 0.5), *place

    return sorted(rows, key=key)


def _plain(value: object) -> object:
    """A value that jsonpickle wrote with its numpy type as the number in it."""
    return value.get("value") if isinstance(value, dict) else value
