"""Figures as sentences give them: no exponents, no twenty digits in a row, no infinite multiples."""

from __future__ import annotations

import re
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
