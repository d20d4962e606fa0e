from __future__ import annotations

import numpy as np
import polars as pl

from gdiag.analyzers import power_brake, thermal_slowdown
from gdiag.model import Severity
from tests.analyzers.made_telemetry import card, noisy, timed, watched

BRAKED = (np.arange(800) > 300) & (np.arange(800) % 60 < 8)


def braking(bits: float = 0x88, temperature: float = 58.0) -> list[pl.DataFrame]:
    return [
        card(g, reasons=np.where(BRAKED, bits, 0.0), clock_sm=np.where(BRAKED, 990.0, 1980.0), power=np.where(BRAKED, 320.0, 640.0), temperature=temperature)
        for g in range(4)
    ]  # fmt: skip


def test_bursts_of_the_brake_are_one_finding() -> None:
    run = watched(timed(noisy()), braking())
    (finding,) = power_brake.analyze(run)
    assert finding.severity is Severity.WARNING
    assert finding.measure("reason") == "power brake"
    assert finding.where.gpu is None
    assert thermal_slowdown.analyze(run) == []


def test_hardware_slowdown_of_a_cool_gpu_is_found_here_and_of_a_hot_one_is_heat() -> None:
    cool = watched(timed(noisy()), braking(0x8))
    assert power_brake.analyze(cool)[0].measure("reason") == "hardware slowdown"
    hot = watched(timed(noisy()), braking(0x8, 89.0))
    assert power_brake.analyze(hot) == []
    assert len(thermal_slowdown.analyze(hot)) == 1


def test_no_brake_is_quiet() -> None:
    assert power_brake.analyze(watched(timed(noisy()), [card(0)])) == []


def test_the_share_is_a_threshold() -> None:
    (finding,) = power_brake.analyze(watched(timed(noisy()), braking()), share=0.5)
    assert finding.severity is Severity.INFO
