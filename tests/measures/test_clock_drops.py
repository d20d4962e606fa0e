"""Clocks below their own past: what stands at its limit tells why, and a limit that did not change is no fault."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from gdiag.measures import throttling
from gdiag.measures.clock_drops import Drop, drops
from tests.analyzers.made_telemetry import Floats, card

LATE = np.arange(800) >= 500
LOW = np.where(LATE, 1500.0, 1980.0)


def fall(cards: list[pl.DataFrame], ratio: float = 0.95) -> list[Drop]:
    return drops(throttling.partial(pl.concat(cards).drop("reasons", "clock_sm_max"), 5.0), ratio=ratio)


def test_all_gpus_at_their_models_limit_are_one_drop_for_heat() -> None:
    hot = np.where(LATE, 86.0, 62.0)
    power = np.where(LATE, 480.0, 640.0)
    (drop,) = fall([card(g, clock_sm=LOW, temperature=hot, power=power) for g in range(4)])
    assert drop.why == "heat"
    assert len(drop.units) == 4
    assert (drop.clock_before, drop.clock) == (1980, 1500)
    assert drop.temperature == 86


def test_power_at_a_lowered_limit() -> None:
    limit = np.where(LATE, 420.0, 700.0)
    (drop,) = fall([card(0, clock_sm=LOW, power=np.where(LATE, 418.0, 640.0), power_limit=limit)])
    assert drop.why == "power limit"
    assert (drop.power_limit, drop.power_limit_before) == (420, 700)


def test_power_at_a_limit_that_did_not_change_is_how_gpus_work() -> None:
    assert fall([card(0, clock_sm=np.where(LATE, 1700.0, 1980.0), power=np.where(LATE, 698.0, 640.0))]) == []


def test_neither_at_its_limit_is_unknown_and_says_what_is_lacking() -> None:
    (drop,) = fall([card(0, clock_sm=LOW, power=np.where(LATE, 400.0, 640.0))])
    assert drop.why == "unknown"
    assert drop.lacking == ("event reasons",)
    nameless = card(0, clock_sm=LOW, temperature=np.where(LATE, 86.0, 62.0)).drop("model", "power", "power_limit")
    (drop,) = fall([nameless])
    assert drop.why == "unknown"
    assert drop.lacking == ("event reasons", "the model's name, for its limit", "power and its limit")


@pytest.mark.parametrize(
    "columns",
    [
        {"clock_sm": np.where(LATE, 400.0, 1980.0), "utilization": np.where(LATE, 2.0, 98.0)},
        {"clock_sm": np.where(np.arange(800) % 100 < 8, 1200.0, 1980.0)},
        {"clock_sm": np.where(np.arange(800) >= 795, 1500.0, 1980.0)},
        {"clock_sm": np.linspace(1980.0, 1900.0, 800)},
        {"clock_sm": 1500.0},
    ],
)
def test_idle_short_dips_slight_declines_and_constant_clocks_are_none(columns: dict[str, float | Floats]) -> None:
    assert fall([card(0, more=columns)]) == []


def test_without_any_sign_of_load_nothing_is_said() -> None:
    assert fall([card(0, clock_sm=LOW).drop("utilization", "power", "power_limit")]) == []


def test_where_reasons_are_logged_they_decide() -> None:
    assert drops(throttling.partial(card(0, clock_sm=LOW), 5.0)) == []


def test_the_ratio_is_a_threshold() -> None:
    slight = [card(0, clock_sm=np.where(LATE, 1850.0, 1980.0), power=np.where(LATE, 540.0, 640.0))]
    assert fall(slight)
    assert fall(slight, ratio=0.9) == []
