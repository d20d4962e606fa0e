from __future__ import annotations

import numpy as np
import pytest

from gdiag.measures import trends


def test_mann_kendall_is_symmetric_and_large_for_a_line() -> None:
    line = np.linspace(0, 1, 60)
    assert trends.mann_kendall(line) > 8
    assert trends.mann_kendall(-line) == pytest.approx(-trends.mann_kendall(line))


def test_theil_sen_shrugs_off_an_outlier() -> None:
    line = 0.5 * np.arange(50.0)
    line[20] = 1e6
    assert trends.theil_sen(line) == pytest.approx(0.5)
