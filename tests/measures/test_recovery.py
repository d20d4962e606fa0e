"""When a curve is back: at the level that was due, or at least at that of before."""

from __future__ import annotations

import numpy as np

from gdiag.measures.recovery import regained_row
from tests.measures.made import Floats


def stepped(height: float, half_life: float, *, fall: float = 0.0, rows: int = 1000) -> Floats:
    """Noise of 0.01 about 2 that goes up by `height` at row 100, which wears off, and falls by `fall` a row all along."""
    rng = np.random.default_rng(3)
    row = np.arange(rows)
    up = np.where(row >= 100, height * 0.5 ** ((row - 100) / half_life), 0.0)
    return np.asarray(2.0 - fall * row + up + 0.01 * rng.standard_normal(rows), dtype=np.float64)


def test_a_curve_that_falls_on_regains_its_level() -> None:
    found = regained_row(stepped(0.5, np.inf, fall=0.001), 1.9, 100, 0.01)
    assert found is not None
    assert abs(found - 600) <= 15


def test_what_wears_off_is_regained_and_a_level_that_stays_is_not() -> None:
    found = regained_row(stepped(0.5, 40.0), 2.0, 100, 0.01)
    assert found is not None
    assert 250 <= found <= 500
    assert regained_row(stepped(0.5, np.inf), 2.0, 100, 0.01) is None


def test_a_dip_below_the_level_is_no_return() -> None:
    value = stepped(0.5, np.inf)
    value[300:312] = 1.9
    assert regained_row(value, 2.0, 100, 0.01) is None
    assert regained_row(value[:105], 2.0, 100, 0.01) is None
