from __future__ import annotations

import numpy as np
import polars as pl

from gdiag.analyzers import memory_growth
from gdiag.model import Severity
from tests.analyzers import made_runs
from tests.analyzers.made_telemetry import card, noisy, timed, watched

GIB = 2.0**30
LEAK = GIB * (40 + 8 * np.linspace(0, 1, 2000) + 0.02 * np.random.default_rng(0).standard_normal(2000))


def test_a_leak_in_the_step_log_is_found() -> None:
    (finding,) = memory_growth.analyze(made_runs.view(timed(noisy(), memory=LEAK)))
    assert finding.severity is Severity.WARNING
    assert (finding.number("growth") or 0) > 15
    assert finding.where.step is not None


def test_a_leak_in_the_telemetry_is_found_against_the_card() -> None:
    used = GIB * (70 + 9 * np.linspace(0, 1, 800))
    cards = [card(0, memory_used=used).with_columns(pl.lit(80 * GIB).alias("memory_total"))]
    (finding,) = memory_growth.analyze(watched(timed(noisy()), cards))
    assert finding.severity is Severity.WARNING
    assert finding.measure("near_full") is True


def test_constant_memory_is_quiet() -> None:
    assert memory_growth.analyze(made_runs.view(timed(noisy(), memory=np.full(2000, 40 * GIB)))) == []


def test_the_share_is_a_threshold() -> None:
    assert memory_growth.analyze(made_runs.view(timed(noisy(), memory=LEAK)), share=0.5) == []
