"""GD302: jumps that the schedule does not explain."""

from __future__ import annotations

import numpy as np
import pytest

from gdiag.analyzers.lr_discontinuity import analyze
from gdiag.model import Severity
from tests.analyzers.made_runs import cosine, view
from tests.benchmarks.schedules import case


def test_fires_at_the_first_row_of_a_jump() -> None:
    lr = cosine()
    lr[600:605] *= 20
    ids = np.arange(1000) * 16
    (finding,) = analyze(view({"lr": lr, "sample_start": ids, "sample_end": ids + 16}))
    assert (finding.where.step, finding.where.last_step, finding.where.line) == (600, 604, 601)
    assert finding.severity is Severity.WARNING
    assert finding.number("lr_ratio") == pytest.approx(20, rel=0.01)
    assert finding.measure("lasts") is False
    assert finding.number("sample_start") == 9600


@pytest.mark.parametrize("seed", range(24))
def test_quiet_on_schedules(seed: int) -> None:
    made = case(7000 + seed)
    assert analyze(view({"step": made.step, "lr": made.lr})) == []


def test_lasting_fall_is_information() -> None:
    lr = cosine()
    lr[300:] = 1e-8
    (finding,) = analyze(view({"lr": lr}))
    assert finding.severity is Severity.INFO


def test_threshold_sets_the_least_change() -> None:
    lr = np.full(200, 1e-3)
    lr[100:] *= 1.5
    assert len(analyze(view({"lr": lr}))) == 1
    assert analyze(view({"lr": lr}), ratio=1.6) == []


def test_the_first_stair_of_a_warm_up_by_epochs_is_information() -> None:
    stairs = np.repeat([1e-6, 2e-4], [400, 600])
    assert [f.severity for f in analyze(view({"lr": stairs}))] == [Severity.INFO]
    assert [f.severity for f in analyze(view({"lr": 30 * stairs.clip(2e-5)}))] == [Severity.WARNING]
