"""GD010: times, sizes and norms that cannot be are told, and what stands for "no value" is not."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gdiag.analyzers.impossible_values import analyze
from gdiag.model import Severity
from tests.analyzers.made_runs import learning, view


@pytest.mark.parametrize(
    ("column", "value"), [("step_time", math.nan), ("tokens_per_s", math.inf), ("grad_norm", -1.0)]
)
def test_fires_with_the_rows(column: str, value: float) -> None:
    values = np.full(100, 0.5)
    values[60:] = value
    (finding,) = analyze(view({"loss": learning(100), column: values}))
    assert finding.severity is Severity.INFO
    assert (finding.where.step, finding.where.last_step, finding.number("rows")) == (60, 99, 40)
    assert "40 of 100 rows" in finding.message


def test_a_column_without_another_value_says_nothing() -> None:
    (finding,) = analyze(view({"loss": learning(100), "step_time": np.full(100, -1.0)}))
    assert "all 100 rows" in finding.message


def test_quiet_on_first_rows_without_a_time_and_on_gradients_that_are_not_finite() -> None:
    times, norm = np.full(100, 0.5), np.ones(100)
    times[0], norm[50:] = math.nan, math.nan
    assert analyze(view({"loss": learning(100), "step_time": times, "grad_norm": norm})) == []


def test_threshold() -> None:
    times = np.full(100, 0.5)
    times[:2] = math.nan
    assert len(analyze(view({"step_time": times}), rows=2)) == 1
