from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from gdiag.analyzers import clock_outlier, thermal_slowdown
from gdiag.model import Severity
from tests.analyzers.made_telemetry import START, Floats, card, noisy, timed, watched

SAMPLES = 800


def heating(at: int = 400, clock: float = 1700.0) -> dict[str, float | Floats]:
    """Columns of a GPU that throttles from sample `at` on."""
    hot = np.arange(SAMPLES) >= at
    return {
        "temperature": np.where(hot, 88.0, 64.0), "clock_sm": np.where(hot, clock, 1980.0), "reasons": np.where(hot, 32.0, 0.0),
    }  # fmt: skip


def test_the_throttled_gpu_is_named_with_step_and_effect() -> None:
    run = watched(
        timed(np.where(np.arange(2000) >= 1000, 1.1, 1.0) * noisy()), [card(0), card(1), card(2, more=heating())]
    )
    (finding,) = thermal_slowdown.analyze(run)
    assert finding.severity is Severity.WARNING
    assert (finding.where.host, finding.where.gpu) == ("node-1", 2)
    assert finding.where.step is not None
    assert abs(finding.where.step - 1000) <= 3
    assert finding.where.time == pytest.approx(START + 2000, abs=6)
    assert finding.number("step_time_effect") == pytest.approx(10, abs=1)
    assert finding.number("clock_loss") == pytest.approx(14.1, abs=0.2)
    assert finding.measure("scope") == "one GPU"


def test_all_gpus_are_one_finding() -> None:
    (finding,) = thermal_slowdown.analyze(watched(timed(noisy()), [card(g, more=heating()) for g in range(4)]))
    assert finding.where.gpu is None
    assert finding.where.host == "node-1"
    assert finding.measure("scope") == "all GPUs"


def test_hot_with_full_clocks_is_no_throttling() -> None:
    assert thermal_slowdown.analyze(watched(timed(noisy()), [card(g, temperature=83.0) for g in range(4)])) == []


def test_without_reasons_clock_and_heat_together_tell_it() -> None:
    cards = [c.drop("reasons") for c in (card(0), card(1, more=heating()))]
    (finding,) = thermal_slowdown.analyze(watched(timed(noisy()), cards))
    assert finding.measure("told_by") == "clocks and temperature"


def test_idle_gaps_are_no_throttling() -> None:
    idle = (np.arange(SAMPLES) > 300) & (np.arange(SAMPLES) < 500)
    gap = card(
        0, clock_sm=np.where(idle, 345.0, 1980.0), utilization=np.where(idle, 2.0, 98.0), reasons=np.where(idle, 1.0, 0.0),
        power=np.where(idle, 110.0, 640.0),
    )  # fmt: skip
    assert thermal_slowdown.analyze(watched(timed(noisy()), [gap])) == []


def test_the_share_is_a_threshold() -> None:
    run = watched(timed(noisy()), [card(0), card(1, more=heating(at=780))])
    assert thermal_slowdown.analyze(run)[0].severity is Severity.WARNING
    assert thermal_slowdown.analyze(run, share=0.5, seconds=1e6)[0].severity is Severity.INFO


def test_a_single_sample_is_nothing() -> None:
    reasons = np.zeros(SAMPLES)
    reasons[400] = 32
    assert thermal_slowdown.analyze(watched(timed(noisy()), [card(0, reasons=reasons)])) == []


@pytest.mark.parametrize("hours", [-9, -5, 2, 5.75])
def test_a_local_clock_is_moved_onto_the_step_log(hours: float) -> None:
    cards = [
        c.with_columns(pl.lit(False).alias("zone_known"))
        for c in (card(0, start=START + 3600 * hours), card(1, start=START + 3600 * hours, more=heating()))
    ]
    (finding,) = thermal_slowdown.analyze(watched(timed(noisy()), cards))
    assert finding.where.step is not None
    assert abs(finding.where.step - 1000) <= 3
    assert finding.where.time == pytest.approx(START + 2000, abs=6)
    assert f"{-hours:+g} h" in str(finding.measure("clock_offset"))


def test_the_drivers_counter_tells_what_samples_miss() -> None:
    counter = np.maximum(0.0, np.arange(SAMPLES) - 500) * 1.5
    cards = [card(0, throttle_time=0.0), card(1, throttle_time=counter)]
    (finding,) = thermal_slowdown.analyze(watched(timed(noisy()), cards))
    assert finding.where.gpu == 1
    assert finding.where.step is not None
    assert abs(finding.where.step - 1252) <= 4


def test_a_gpu_slower_and_hotter_than_its_peers_throttles_though_nothing_says_so() -> None:
    def unnamed(gpu: int, clock_sm: float = 1980.0, temperature: float = 62.0) -> pl.DataFrame:
        return card(gpu, clock_sm=clock_sm, temperature=temperature).drop("reasons", "clock_sm_max", "model")

    peers = [unnamed(g) for g in range(7)]
    run = watched(timed(noisy()), [*peers, unnamed(7, clock_sm=1600.0, temperature=88.0)], "")
    (finding,) = thermal_slowdown.analyze(run)
    assert clock_outlier.analyze(run) == []
    assert finding.where.gpu == 7
    assert finding.number("above_peers") == 26
    assert finding.measure("told_by") == "clocks and temperature of its peers"
    cool = watched(timed(noisy()), [*peers, unnamed(7, clock_sm=1600.0, temperature=60.0)], "")
    assert thermal_slowdown.analyze(cool) == []
    assert len(clock_outlier.analyze(cool)) == 1


def test_all_gpus_below_their_own_past_at_their_models_limit_where_nothing_else_is_logged() -> None:
    late = np.arange(800) >= 500
    columns = {
        "clock_sm": np.where(late, 1850.0, 1980.0),
        "temperature": np.where(late, 86.0, 62.0),
        "power": np.where(late, 560.0, 640.0),
    }
    cards = [card(g, more=columns).drop("reasons", "clock_sm_max") for g in range(4)]
    (finding,) = thermal_slowdown.analyze(watched(timed(noisy()), cards))
    assert finding.severity is Severity.WARNING
    assert finding.message.startswith("all 4 GPUs throttle for heat: clocks fall from 1980 to 1850 MHz")
    assert finding.measure("scope") == "all GPUs"
    cool = [c.with_columns(pl.lit(70.0).alias("temperature")) for c in cards]
    assert thermal_slowdown.analyze(watched(timed(noisy()), cool)) == []
