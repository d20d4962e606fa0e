"""Figures as sentences give them: no exponents, no twenty digits in a row, no infinite multiples."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

HUGE: Final = 1e6
"""From here on a multiple says no more than that it is beyond all measure; the evidence keeps its figure."""
BEYOND: Final = "more than a million"


def multiple(ratio: float) -> str:
    """A ratio in three digits: 2.41, 17.3, 390, 12,400, more than a million."""
    if ratio >= HUGE:
        return BEYOND
    return f"{float(f'{ratio:.3g}'):,.0f}" if ratio >= 999.5 else f"{ratio:.3g}"


def whole(ratio: float) -> str:
    """A multiple in whole numbers: 214, more than a million."""
    return f"{ratio:.0f}" if ratio < HUGE else BEYOND


def filled(text: str, ratio: float) -> str:
    """`text` with `ratio` in the place that it leaves for a figure: {:.0f}, {:.1f}, …"""
    return (text if ratio < HUGE else re.sub(r"\{:\.\d[fg]\}", BEYOND, text)).format(ratio)


def distance(period: float) -> str:
    """Steps from one event to the next, which may be a fraction: 50,000, 127.4, 2."""
    return f"{period:,.1f}".removesuffix(".0")


def listed(numbers: Sequence[int], most: int = 4) -> str:
    """Ascending numbers in words, neighbours as one: 3, 12 and 29; 0–4 and 6; 0, 2, 4, 6 and 57 more."""
    spans: list[list[int]] = []
    for number in numbers:
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    # Two neighbours are shorter one by one.
    parts = [part for a, b in spans for part in ([(a, b)] if b - a > 1 else [(n, n) for n in range(a, b + 1)])]
    words = [f"{a}–{b}" if b > a else str(a) for a, b in parts]
    if len(parts) > most:
        return f"{', '.join(words[:most])} and {sum(b - a + 1 for a, b in parts[most:])} more"
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))
