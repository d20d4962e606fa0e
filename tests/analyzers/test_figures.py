"""Ratios in sentences: three digits, no exponents that nobody reads."""

from __future__ import annotations

import pytest

from gdiag.analyzers.figures import multiple


@pytest.mark.parametrize(
    ("ratio", "said"),
    [(2.4123, "2.41"), (17.31, "17.3"), (391.7, "392"), (999.6, "1,000"), (12_412.0, "12,400"), (3.2e8, "3.2e+08")],
)
def test_a_ratio_has_three_digits(ratio: float, said: str) -> None:
    assert multiple(ratio) == said
