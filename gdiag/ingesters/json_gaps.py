"""Lists of numbers with damage inside, beside lists of the same rows: what of them is known to stand in which row.

A damaged piece hides one number or several, or none, so that what follows it may have moved. What stands before the first
damage counts from the front; what stands behind the last one counts from the end, where an undamaged list beside it tells how
many rows there are. All between is not used: a number in another's row is worse than none.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Final

Bad = tuple[int, str, str]
"""Line, reason and text of a reject."""

_GAP: Final = re.compile(r"\0(\d{1,4})(!?)$")
"""Stands for a damaged piece, and tells whether it was more than a number."""
_STRUCTURE: Final = re.compile(r'[\[\]{}":]')
"""Signs that belong to no number: the damage took away where a list ends or a name begins."""


def gap(number: int, damage: str) -> str:
    """JSON that stands for the damaged piece of this number in the list of rejects."""
    return json.dumps(f"\0{number}{'!' if _STRUCTURE.search(damage) else ''}")


def filled(document: object, bad: list[Bad]) -> object:
    """The document with null for what its damaged lists do not tell; a reject for each list that loses more than the damage."""
    if isinstance(document, list):
        return [None if _is_gap(item) else filled(item, bad) for item in document] if _nested(document) else document
    if not isinstance(document, dict):
        return document
    rows = _rows(document)
    torn = {
        k: _aligned(str(k), v, rows, bad) for k, v in document.items() if isinstance(v, list) and any(map(_is_gap, v))
    }
    longest = max(map(len, torn.values()), default=0)
    told = {name: [*items, *[None] * (longest - len(items))] for name, items in torn.items()}
    return {name: told[name] if name in told else filled(value, bad) for name, value in document.items()}


def _rows(document: dict[object, object]) -> int | None:
    """How many rows undamaged lists have, None where there are none or they do not agree."""
    lengths = Counter(len(v) for v in document.values() if isinstance(v, list) and v and not any(map(_is_gap, v)))
    best = lengths.most_common(2)
    if best and (len(best) == 1 or best[0][1] > best[1][1]):
        return best[0][0]
    first, last, interval = (document.get(key) for key in ("start_step", "end_step", "step_interval"))
    if (
        isinstance(first, int)
        and isinstance(last, int)
        and isinstance(interval, int)
        and interval > 0
        and first <= last
    ):
        return (last - first) // interval + 1
    return None


def _aligned(name: str, items: list[object], rows: int | None, bad: list[Bad]) -> list[object]:
    """What stands in its row for certain; as many items as there are rows where that is known."""
    gaps = [i for i, item in enumerate(items) if _is_gap(item)]
    front, back = items[: gaps[0]], items[gaps[-1] + 1 :]
    if rows is None or any(str(items[i]).endswith("!") for i in gaps):
        back = []
    if rows is not None and len(items) > rows:
        front = back = []  # A comma more than there are rows: from somewhere on all has moved.
    lost = len(items) - len(gaps) - len(front) - len(back)
    if lost:
        number = _GAP.match(str(items[gaps[0]]))
        line = bad[int(number[1])][0] if number is not None and int(number[1]) < len(bad) else 1
        bad.append((line, "nothing tells which rows the numbers behind the damage belong to", f"{lost} of {name}"))
    hidden = 0 if rows is None else rows - len(front) - len(back)
    return [*front, *[None] * hidden, *back]


def _is_gap(item: object) -> bool:
    return isinstance(item, str) and _GAP.match(item) is not None


def _nested(items: list[object]) -> bool:
    return any(_is_gap(item) or isinstance(item, list | dict) for item in items)
