from __future__ import annotations

import numpy as np

from gdiag.analyzers import power_limit
from gdiag.measures.run import RunView
from gdiag.model import Severity
from tests.analyzers.made_telemetry import card, noisy, timed, watched


def test_a_lowered_limit_is_found() -> None:
    cards = [
        card(g, reasons=4.0, power=398.0, power_limit=400.0, power_default_limit=700.0, clock_sm=1400.0)
        for g in range(2)
    ]
    (finding,) = power_limit.analyze(watched(timed(noisy()), cards))
    assert finding.severity is Severity.WARNING
    assert finding.measure("limit_lowered") is True
    assert "limit of 400 W where the board's own is 700 W" in finding.message


def test_the_models_own_limit_stands_in_for_one_that_is_not_logged() -> None:
    (finding,) = power_limit.analyze(
        watched(timed(noisy()), [card(0, reasons=4.0, power=498.0, power_limit=500.0, clock_sm=1600.0)])
    )
    assert finding.where.gpu == 0


def test_capped_far_below_the_limit_shown_is_found() -> None:
    (finding,) = power_limit.analyze(watched(timed(noisy()), [card(0, reasons=4.0, power=489.0, clock_sm=1680.0)]))
    assert finding.measure("limit_lowered") is False


def test_a_cap_at_full_power_is_how_gpus_work() -> None:
    assert power_limit.analyze(watched(timed(noisy()), [card(0, reasons=4.0, power=697.0, clock_sm=1755.0)])) == []


def test_a_cap_bit_on_an_idle_gpu_is_nothing() -> None:
    assert (
        power_limit.analyze(
            watched(timed(noisy()), [card(0, reasons=4.0, power=90.0, utilization=0.0, clock_sm=345.0)])
        )
        == []
    )


def test_the_share_is_a_threshold() -> None:
    some = np.where(np.arange(800) < 240, 4.0, 0.0)
    run = watched(timed(noisy()), [card(0, reasons=some, power=398.0, power_limit=400.0, clock_sm=1400.0)])
    assert len(power_limit.analyze(run)) == 1
    assert power_limit.analyze(run, share=0.5) == []


def test_without_a_model_the_highest_clock_stands_in_for_it() -> None:
    def unnamed(limit: float) -> RunView:
        cards = [
            card(g, reasons=4.0, power=limit - 3, power_limit=limit, clock_sm=1600.0).drop("model") for g in range(2)
        ]
        return watched(timed(noisy()), cards)

    (finding,) = power_limit.analyze(unnamed(591.0))
    assert "boards of that clock have 700 W or more" in finding.message
    assert power_limit.analyze(unnamed(700.0)) == []


def test_without_reasons_power_at_a_lowered_limit_tells_it() -> None:
    low = [card(g, power=398.0, power_limit=400.0, clock_sm=1500.0).drop("reasons") for g in range(2)]
    (finding,) = power_limit.analyze(watched(timed(noisy()), low))
    assert "under a limit of 400 W where the board's own is 700 W" in finding.message
    full = [card(g, power=698.0, clock_sm=1700.0).drop("reasons") for g in range(2)]
    assert power_limit.analyze(watched(timed(noisy()), full)) == []


def test_a_limit_lowered_in_mid_run_of_an_unknown_model() -> None:
    late = np.arange(800) >= 500
    columns = {
        "power": np.where(late, 249.0, 380.0),
        "power_limit": np.where(late, 250.0, 400.0),
        "clock_sm": np.where(late, 1100.0, 1410.0),
    }
    cards = [card(g, more=columns).drop("reasons", "clock_sm_max", "model") for g in range(2)]
    (finding,) = power_limit.analyze(watched(timed(noisy()), cards))
    assert "a power limit lowered from 400 W to 250 W" in finding.message


def test_a_limit_below_the_default_all_along_is_held_against_the_default() -> None:
    late = np.arange(800) >= 500
    columns = {"power": np.where(late, 319.0, 250.0), "clock_sm": np.where(late, 1100.0, 1410.0)}
    cards = [
        card(0, more=columns, power_limit=320.0, power_default_limit=default).drop("reasons", "clock_sm_max", "model")
        for default in (400.0, 320.0)
    ]
    (finding,) = power_limit.analyze(watched(timed(noisy()), cards[:1]))
    assert "a power limit lowered from the default 400 W to 320 W" in finding.message
    assert (finding.number("default_power_limit"), finding.number("power_limit_before")) == (400, 320)
    assert power_limit.analyze(watched(timed(noisy()), cards[1:])) == []
