"""GD106: outliers are said once."""

from __future__ import annotations

import numpy as np

from gdiag.analyzers.hard_batches import analyze
from gdiag.model import Severity
from tests.analyzers.made_runs import learning, view


def hard(count: int, rows: int = 2000) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    loss = learning(rows)
    loss[500 + (np.linspace(0, 1, count) ** 1.5 * (rows - 600)).astype(int)] += 0.8
    return loss


def test_fires_once_with_the_rate() -> None:
    (finding,) = analyze(view({"loss": hard(9)}))
    assert finding.severity is Severity.INFO
    assert finding.number("rows") == 9
    assert 3 < finding.number("rate") < 6  # type: ignore[operator]


def test_quiet_on_plain_noise() -> None:
    assert analyze(view({"loss": learning(2000)})) == []


def test_threshold_sets_the_least_count() -> None:
    assert analyze(view({"loss": hard(9)}), rows=10, far=1000.0) == []


def test_one_row_is_said_where_it_stands_far_out() -> None:
    loss = learning(2000)
    loss[900] += 0.45
    (finding,) = analyze(view({"loss": loss}), far=6.0)
    assert (finding.severity, finding.where.step, finding.number("rows")) == (Severity.INFO, 900, 1)
    assert analyze(view({"loss": loss}), far=30.0) == []


def test_rows_at_equal_distances_are_a_warning() -> None:
    loss = learning(2000)
    loss[400::250] += 0.8
    (finding,) = analyze(view({"loss": loss}))
    assert (finding.severity, finding.number("period")) == (Severity.WARNING, 250)
    (finding,) = analyze(view({"loss": loss, "epoch": (np.arange(2000) + 100) / 250}))
    assert finding.severity is Severity.INFO


def test_few_rows_close_together_have_no_period() -> None:
    """Four rows 12 to 14 steps apart stand so by chance: three rows in thirteen would be taken for the next."""
    loss = learning(2000)
    loss[[1745, 1758, 1772, 1784]] += 0.8
    assert [finding.severity for finding in analyze(view({"loss": loss}), rows=1)] == [Severity.INFO]
