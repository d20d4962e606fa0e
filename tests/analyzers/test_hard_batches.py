"""GD106: outliers are said once."""

from __future__ import annotations

import numpy as np

from gdiag.analyzers.hard_batches import analyze
from gdiag.model import Severity
from tests.analyzers.made_runs import learning, view


def hard(count: int, rows: int = 2000) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    loss = learning(rows)
    loss[np.linspace(500, rows - 100, count).astype(int)] += 0.8
    return loss


def test_fires_once_with_the_rate() -> None:
    (finding,) = analyze(view({"loss": hard(9)}))
    assert finding.severity is Severity.INFO
    assert finding.number("rows") == 9
    assert 3 < finding.number("rate") < 6  # type: ignore[operator]


def test_quiet_on_plain_noise() -> None:
    assert analyze(view({"loss": learning(2000)})) == []


def test_threshold_sets_the_least_count() -> None:
    assert analyze(view({"loss": hard(9)}), rows=10) == []
