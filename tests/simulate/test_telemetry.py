"""The thermal model and its CSV."""

from __future__ import annotations

import numpy as np

from gdiag.simulate.telemetry import (
    CARDS,
    HW_SLOWDOWN,
    IDLE,
    POWER_BRAKE,
    POWER_CAP,
    SW_THERMAL,
    Farm,
    calm,
    farm,
    smi_csv,
)

CARD = CARDS[0]


def made(bend: str = "", variant: int | None = None) -> Farm:
    rng = np.random.default_rng(3)
    weather = calm(600, 4, CARD, rng)
    if bend == "fan":
        weather.resistance[200:, 2] *= 2.1
    if bend == "cap":
        weather.limit *= 0.6
    if bend == "brake":
        weather.brake[300:330] = True
    if bend == "idle":
        weather.load[100:120] = 0.0
    out = farm(CARD, weather, 1_780_000_000.0, 5.0, rng, host=False)
    if variant is not None:
        out.variant = variant
    return out


def test_calm_gpus_run_at_full_clock_without_reason() -> None:
    out = made()
    assert (out.reasons == 0).all()
    assert (out.clock == CARD.clock).all()
    assert out.temperature.max() < CARD.slowdown


def test_a_stopped_fan_heats_one_gpu_until_it_throttles() -> None:
    out = made("fan")
    assert (out.reasons[300:, 2] & SW_THERMAL).any()
    assert out.clock[300:, 2].mean() < 0.95 * CARD.clock
    assert (out.reasons[:, [0, 1, 3]] == 0).all()
    assert out.clocks(float(out.time[-1]))[2] < 1.0


def test_a_power_cap_lowers_clocks_and_says_why() -> None:
    out = made("cap")
    assert (out.reasons & POWER_CAP != 0).mean() > 0.95
    assert out.power.max() <= 0.6 * CARD.limit * 1.02


def test_a_power_brake_halves_the_clock() -> None:
    out = made("brake")
    inside = out.reasons[305:330]
    assert (inside & POWER_BRAKE != 0).all()
    assert (inside & HW_SLOWDOWN != 0).all()
    assert (out.clock[305:330] <= 0.51 * CARD.clock).all()


def test_idle_is_its_own_reason_and_sets_no_pace() -> None:
    out = made("idle")
    assert (out.reasons[105:118] == IDLE).all()
    assert (out.clocks(float(out.time[110]) + 1) == 1.0).all()


def test_header_variants() -> None:
    texts = [smi_csv(made(variant=variant)) for variant in range(4)]
    headers = {text.splitlines()[0] for text in texts}
    assert len(headers) == 2
    assert all(len(text.splitlines()) == 1 + 600 * 4 for text in texts)
    assert "1980 MHz" in texts[0]
    assert "1980 MHz" not in texts[1]
    assert "Not Active" in texts[2]
