"""Faults of GPUs, with the nvidia-smi telemetry of a thermal model beside the log."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from gdiag.simulate.faults.fault import Fault, needs
from gdiag.simulate.forces import Forces
from gdiag.simulate.telemetry import CARDS, Farm, Weather, calm, farm
from gdiag.simulate.timing import times
from gdiag.simulate.truth import Event

Bend = Callable[[Weather, int], None]


def _build(forces: Forces, at: int, bend: Bend) -> Farm:
    """Telemetry over the whole run; `bend` gets the weather and the tick of executed step `at`."""
    made = forces.model
    card = CARDS[int(forces.rng.integers(len(CARDS)))]
    duration = 1.6 * made.step_time * forces.n + 60.0
    tick = max(1.0, round(duration / 900.0))
    ticks = int(duration / tick)
    weather = calm(ticks, made.ranks, card, forces.rng)
    begins = times(forces).end[at - 1] - made.clock if at else 0.0
    bend(weather, min(ticks - 1, int(begins / tick) + 1))
    forces.farm = farm(card, weather, made.clock, tick, forces.rng, bool(forces.rng.random() < 0.5))
    return forces.farm


def _throttles(forces: Forces, made: Farm) -> int:
    """The executed step at which the first GPU runs below its full clock."""
    tick = int(np.argmax((made.clock < made.card.clock).any(axis=1)))
    return min(forces.n - 1, int(np.searchsorted(times(forces).end, made.time[tick])))


def _where(forces: Forces, gpu: int) -> dict[str, str | int | None]:
    return {"host": forces.farm.hosts[gpu] if forces.farm is not None else None, "index": gpu}


def _thermal(forces: Forces) -> list[Event]:
    at, gpu = forces.pick(0.3, 0.6), int(forces.rng.integers(forces.model.ranks))

    def bend(weather: Weather, tick: int) -> None:
        weather.resistance[tick:, gpu] *= float(forces.rng.uniform(1.9, 2.6))  # a fan stops

    at = _throttles(forces, _build(forces, at, bend))
    patterns = ("thermal_slowdown", "step_time_drift", "step_time_shift")
    return [
        Event(
            "thermal_throttling",
            ("thermal_throttling",),
            patterns,
            forces.seen(at),
            gpu=_where(forces, gpu),
            slow=True,
            tolerates_more=True,
        )
    ]


def _thermal_all(forces: Forces) -> list[Event]:
    at = forces.pick(0.3, 0.6)

    def bend(weather: Weather, tick: int) -> None:
        rise = np.clip((np.arange(len(weather.inlet)) - tick) / 200.0, 0.0, 1.0)
        weather.inlet += 38.0 * rise[:, None]  # the room's cooling fails

    at = _throttles(forces, _build(forces, at, bend))
    patterns = ("thermal_slowdown", "step_time_drift", "step_time_shift")
    return [
        Event("thermal_throttling", ("thermal_throttling",), patterns, forces.seen(at), slow=True, tolerates_more=True)
    ]


def _cap(forces: Forces) -> list[Event]:
    def bend(weather: Weather, _tick: int) -> None:
        weather.limit *= float(forces.rng.uniform(0.5, 0.75))

    _build(forces, 0, bend)
    return [Event("power_cap", ("power_cap",), ("power_limit",), forces.seen(0), whole_run=True, tolerates_more=True)]


def _brake(forces: Forces) -> list[Event]:
    at = forces.pick(0.3, 0.7)

    def bend(weather: Weather, tick: int) -> None:
        weather.brake[tick : tick + max(15, len(weather.inlet) // 15)] = True

    _build(forces, at, bend)
    return [
        Event(
            "power_brake",
            ("power_brake",),
            ("slow_steps", "power_brake", "step_time_shift"),
            forces.seen(at),
            slow=True,
            tolerates_more=True,
        )
    ]


def _ecc(forces: Forces) -> list[Event]:
    at, gpu = forces.pick(0.3, 0.8), int(forces.rng.integers(forces.model.ranks))

    def bend(weather: Weather, tick: int) -> None:
        weather.uncorrected[tick:, gpu] += float(forces.rng.integers(1, 4))

    _build(forces, at, bend)
    forces.kick[at], forces.half_life = forces.size(0.8, 3.0), 12.0
    causes = ("hardware_fault", "silent_data_corruption")
    return [
        Event(
            "uncorrectable_ecc",
            causes,
            ("single_spike", "ecc_error"),
            forces.seen(at),
            gpu=_where(forces, gpu),
            tolerates_more=True,
        )
    ]


def _calm(forces: Forces) -> list[Event]:
    _build(forces, 0, lambda _weather, _tick: None)
    return []


def _hot(forces: Forces) -> list[Event]:
    def bend(weather: Weather, _tick: int) -> None:
        weather.inlet += 14.0  # six degrees below the slowdown temperature

    _build(forces, 0, bend)
    return []


def _idle(forces: Forces) -> list[Event]:
    def bend(weather: Weather, _tick: int) -> None:
        for place in range(120, len(weather.load) - 30, 250):
            weather.load[place : place + 12] = 0.0

    _build(forces, 0, bend)
    return []


_TIME: Final = needs("time")
FAULTS: Final = (
    Fault("thermal-throttling", "one GPU's fan stops: it heats, throttles and holds all others up", _thermal, _TIME, sudden=False),
    Fault("cooling-failure", "the inlet air warms by 38 °C: all GPUs throttle", _thermal_all, _TIME, sudden=False),
    Fault("power-cap", "all GPUs are limited to half or three quarters of their power", _cap, _TIME, sudden=False),
    Fault("power-brake", "a power brake halves the clocks for a while", _brake, _TIME, sudden=False),
    Fault("ecc-error", "an uncorrectable ECC error beside a loss spike", _ecc, _TIME | needs("grad"), sudden=False),
    Fault("gpus-calm", "telemetry of healthy GPUs", _calm, _TIME, True, "healthy telemetry"),
    Fault("gpus-hot", "above 80 °C at full clocks, without any throttle reason", _hot, _TIME, True, "hot but not throttled: info at most"),
    Fault("gpus-idle-gaps", "idle gaps: low clocks that are no throttling", _idle, _TIME, True, "idle gaps are no throttling"),
)  # fmt: skip
