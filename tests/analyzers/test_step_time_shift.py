from __future__ import annotations

import numpy as np
import pytest

from gdiag.analyzers import step_time_shift
from gdiag.model import Severity
from tests.analyzers import made_runs
from tests.analyzers.made_telemetry import noisy, timed


def shifted(at: int = 1200, by: float = 1.2, until: int | None = None) -> made_runs.Floats:
    seconds = noisy()
    seconds[at:until] *= by
    return seconds


def test_a_shift_is_found_with_its_place_and_size() -> None:
    (finding,) = step_time_shift.analyze(made_runs.view(timed(shifted())))
    assert finding.severity is Severity.WARNING
    assert finding.where.step is not None
    assert abs(finding.where.step - 1200) <= 5
    assert finding.where.time is not None
    assert abs((finding.number("ratio") or 0) - 1.2) < 0.01
    assert finding.measure("recovered") is False
    assert finding.measure("share") == "unknown"


def test_a_bump_says_that_it_returned() -> None:
    (finding,) = step_time_shift.analyze(made_runs.view(timed(shifted(800, 1.3, 1300))))
    assert finding.measure("recovered") is True
    assert finding.where.last_step is not None
    assert abs(finding.where.last_step - 1300) <= 10


def test_a_steady_run_is_quiet() -> None:
    assert step_time_shift.analyze(made_runs.view(timed(noisy()))) == []


def test_a_faster_run_is_no_fault() -> None:
    assert step_time_shift.analyze(made_runs.view(timed(shifted(by=0.7)))) == []


def test_the_floor_is_a_threshold() -> None:
    run = made_runs.view(timed(shifted(by=1.08)))
    assert len(step_time_shift.analyze(run)) == 1
    assert step_time_shift.analyze(run, floor=0.15) == []


def test_a_larger_batch_explains_it() -> None:
    batch = np.where(np.arange(2000) < 1200, 256.0, 320.0)
    (finding,) = step_time_shift.analyze(made_runs.view(timed(shifted(by=1.25), batch_size=batch)))
    assert finding.severity is Severity.INFO
    assert finding.number("load_ratio") == 1.25


def test_a_throughput_that_holds_is_a_larger_batch() -> None:
    seconds = shifted(by=1.5)
    rate = np.where(np.arange(2000) < 1200, 1.0, 1.5) * 1e6 / seconds
    for column in ("tokens_per_s", "samples_per_s"):
        (finding,) = step_time_shift.analyze(made_runs.view(timed(seconds, **{column: rate})))
        assert finding.severity is Severity.INFO
        assert finding.number("load_ratio") == pytest.approx(1.5, abs=0.02)
        assert finding.message.endswith("with 1.5 times the work per step")
        assert finding.measure("seconds_lost") is None


@pytest.mark.parametrize("column", ["tokens", "samples"])
def test_a_counter_that_runs_faster_is_a_larger_batch(column: str) -> None:
    total = np.cumsum(np.where(np.arange(2000) < 1200, 512.0, 768.0))
    (finding,) = step_time_shift.analyze(made_runs.view(timed(shifted(by=1.5), **{column: total})))
    assert finding.severity is Severity.INFO


def test_a_throughput_that_falls_is_a_slowdown() -> None:
    seconds = shifted(by=1.5)
    (finding,) = step_time_shift.analyze(made_runs.view(timed(seconds, tokens_per_s=1e6 / seconds)))
    assert finding.severity is Severity.WARNING
    assert finding.number("load_ratio") == 1
    assert "batch" not in finding.message


def test_an_average_throughput_that_lags_does_not_hide_a_slowdown() -> None:
    seconds = shifted(by=2.0)
    average = 1e6 * np.arange(1, 2001) / np.cumsum(seconds)
    (finding,) = step_time_shift.analyze(made_runs.view(timed(seconds, samples_per_s=average)))
    assert finding.severity is Severity.WARNING


def test_noise_that_falls_with_the_shift_is_a_larger_batch() -> None:
    rng = np.random.default_rng(6)
    calmer = np.where(np.arange(2000) < 1200, 1.0, 0.5)
    loss, grad = 3 + 0.05 * calmer * rng.standard_normal(2000), np.exp(0.2 * calmer * rng.standard_normal(2000))
    (finding,) = step_time_shift.analyze(made_runs.view(timed(shifted(by=3.9), loss=loss, grad_norm=grad)))
    assert finding.severity is Severity.INFO
    assert finding.measure("batch") == "grown"
    assert "as with a batch that has grown" in finding.message


def test_noise_that_stays_speaks_against_a_larger_batch() -> None:
    rng = np.random.default_rng(6)
    loss, grad = 3 + 0.05 * rng.standard_normal(2000), np.exp(0.2 * rng.standard_normal(2000))
    (finding,) = step_time_shift.analyze(made_runs.view(timed(shifted(by=3.9), loss=loss, grad_norm=grad)))
    assert finding.severity is Severity.WARNING
    assert finding.measure("batch") == "unchanged"
    assert "batch" not in finding.message


def test_where_nothing_decides_both_are_named_with_the_column_that_would() -> None:
    (finding,) = step_time_shift.analyze(made_runs.view(timed(shifted(by=1.2))))
    assert finding.severity is Severity.WARNING
    assert finding.message.endswith(
        "a larger batch or longer sequences would do the same, and no tokens per step are logged"
    )
    (finding,) = step_time_shift.analyze(made_runs.view(timed(shifted(by=1.2), batch_size=np.full(2000, 256.0))))
    assert "batch" not in finding.message


def test_a_throughput_alone_is_told_in_its_own_unit() -> None:
    (finding,) = step_time_shift.analyze(made_runs.view({"tokens_per_s": 2e6 / shifted(by=1.25)}))
    assert finding.message.startswith("throughput falls by 20.")
    assert finding.message.endswith(" tokens/s")
    assert finding.measure("seconds_lost") is None


def test_what_is_over_and_cost_a_few_seconds_is_a_note() -> None:
    brief = step_time_shift.analyze(made_runs.view({"step_time": shifted(800, 1.3, 1300) / 100}))
    lasting = step_time_shift.analyze(made_runs.view({"step_time": shifted() / 100}))
    assert [f.severity for f in (*brief, *lasting)] == [Severity.INFO, Severity.WARNING]


def test_the_cost_is_the_excess_of_its_steps_without_single_slow_ones() -> None:
    seconds = shifted(800, 1.3, 1300)
    plain = step_time_shift.analyze(made_runs.view(timed(seconds)))[0]
    seconds[[900, 1000, 1100]] *= 20
    outliers = step_time_shift.analyze(made_runs.view(timed(seconds)))[0]
    before = plain.number("level_before") or 0
    assert plain.number("seconds_lost") == pytest.approx(500 * 0.3 * before, rel=0.05)
    assert outliers.number("seconds_lost") == pytest.approx(plain.number("seconds_lost"), rel=0.05)


def test_a_short_stretch_of_steps_that_are_all_slow_has_its_cost() -> None:
    (finding,) = step_time_shift.analyze(made_runs.view(timed(shifted(800, 1.8, 870))))
    before = finding.number("level_before") or 0
    assert finding.number("seconds_lost") == pytest.approx(70 * 0.8 * before, rel=0.1)
    assert finding.severity is Severity.WARNING
