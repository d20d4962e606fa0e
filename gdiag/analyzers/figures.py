"""Figures as sentences give them."""

from __future__ import annotations


def multiple(ratio: float) -> str:
    """A ratio in three digits, without an exponent below a million: 2.41, 17.3, 390, 12,400."""
    if 999.5 <= ratio < 1e6:
        return f"{float(f'{ratio:.3g}'):,.0f}"
    return f"{ratio:.3g}"
