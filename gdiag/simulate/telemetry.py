"""GPUs from a small thermal model, and the CSV that nvidia-smi would have written of them.

Each GPU warms with its power through a thermal resistance and towards its inlet air, with one time constant. Power grows
with clock and load. A controller lowers the clock above the slowdown temperature, above the power limit and under a power
brake, and says so in the event-reason mask. Bits: NVML nvmlClocksEventReason*.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import numpy as np

from gdiag.simulate.arrays import Bools, Floats, Ints

IDLE, POWER_CAP, HW_SLOWDOWN, SW_THERMAL, HW_THERMAL, POWER_BRAKE = 0x1, 0x4, 0x8, 0x20, 0x40, 0x80


@dataclass(frozen=True, slots=True)
class Card:
    """A GPU model: temperatures °C, power W, clocks MHz."""

    name: str
    limit: float
    idle: float
    clock: int
    step: int
    slowdown: float
    memory_sensor: bool


CARDS: Final = (
    Card("NVIDIA H100 80GB HBM3", 700.0, 75.0, 1980, 15, 87.0, True),
    Card("NVIDIA A100-SXM4-80GB", 400.0, 60.0, 1410, 15, 85.0, False),
    Card("NVIDIA L40S", 350.0, 35.0, 2520, 15, 88.0, False),
)


@dataclass(slots=True)
class Weather:
    """What acts on the GPUs, one row per telemetry tick and one column per GPU."""

    inlet: Floats
    """Air temperature in front of each GPU [°C]."""
    resistance: Floats
    """Factor on the thermal resistance: a stuck fan or dry paste is 2 and more."""
    limit: Floats
    """Power limit [W]."""
    load: Floats
    """Utilisation, 0-1."""
    brake: Bools
    uncorrected: Floats
    """Cumulative uncorrectable ECC errors."""


@dataclass(slots=True)
class Farm:
    """Telemetry samples, (ticks, gpus), and the pace that they set."""

    card: Card
    hosts: tuple[str | None, ...]
    time: Floats
    temperature: Floats
    power: Floats
    limit: Floats
    clock: Floats
    load: Floats
    reasons: Ints
    uncorrected: Floats
    variant: int

    def clocks(self, now: float) -> Floats:
        """Each GPU's share of the full clock at a Unix time."""
        tick = int(np.clip(np.searchsorted(self.time, now) - 1, 0, len(self.time) - 1))
        busy = self.load[tick] > 0.3
        share: Floats = np.where(busy, self.clock[tick] / self.card.clock, 1.0)
        return share


def calm(ticks: int, gpus: int, card: Card, rng: np.random.Generator) -> Weather:
    """Undisturbed conditions: each GPU sits a little differently in the air stream."""
    place = rng.uniform(-2.0, 2.0, gpus)
    return Weather(
        inlet=np.tile(24.0 + place, (ticks, 1)) + 0.3 * np.sin(np.arange(ticks) / 200.0)[:, None],
        resistance=np.tile(1.0 + 0.03 * rng.standard_normal(gpus), (ticks, 1)),
        limit=np.full((ticks, gpus), card.limit),
        load=np.clip(0.985 + 0.01 * rng.standard_normal((ticks, gpus)), 0.0, 1.0),
        brake=np.zeros((ticks, gpus), bool),
        uncorrected=np.zeros((ticks, gpus)),
    )


def farm(card: Card, weather: Weather, start: float, tick: float, rng: np.random.Generator, host: bool) -> Farm:
    """Run the thermal model; `tick` is the sampling interval [s]."""
    ticks, gpus = weather.inlet.shape
    full = 0.93 * card.limit
    resistance = (card.slowdown - 24.0 - 20.0) / full
    out = Farm(
        card=card,
        hosts=("node-000" if host else None,) * gpus,
        time=start + tick * np.arange(ticks, dtype=np.float64),
        temperature=np.zeros((ticks, gpus)),
        power=np.zeros((ticks, gpus)),
        limit=weather.limit,
        clock=np.zeros((ticks, gpus)),
        load=weather.load,
        reasons=np.zeros((ticks, gpus), np.int64),
        uncorrected=weather.uncorrected,
        variant=int(rng.integers(4)),
    )
    heat = weather.inlet[0] + resistance * weather.resistance[0] * full
    clock = np.full(gpus, float(card.clock))
    blend = 1.0 - np.exp(-tick / 60.0)
    for i in range(ticks):
        load = weather.load[i]
        clock, reasons = _govern(card, clock, heat, weather, i, full)
        power = card.idle + load * (full - card.idle) * (clock / card.clock) ** 2.2
        heat = heat + blend * (weather.inlet[i] + resistance * weather.resistance[i] * power - heat)
        out.temperature[i] = heat + 0.4 * rng.standard_normal(gpus)
        out.power[i] = np.minimum(power * (1 + 0.01 * rng.standard_normal(gpus)), weather.limit[i] * 1.01)
        out.clock[i], out.reasons[i] = clock, reasons
    return out


def _govern(card: Card, clock: Floats, heat: Floats, weather: Weather, i: int, full: float) -> tuple[Floats, Ints]:
    """The clock each GPU may run at, and the reasons for running below its maximum."""
    busy = weather.load[i] > 0.3
    reasons: Ints = np.where(busy, 0, IDLE).astype(np.int64)
    top = np.where(busy, float(card.clock), 0.18 * card.clock)
    allowed = np.maximum((weather.limit[i] * 0.98 - card.idle) / (full - card.idle), 0.05) ** (1 / 2.2) * card.clock
    capped = busy & (allowed < card.clock)
    hot = busy & (heat > card.slowdown)
    very = busy & (heat > card.slowdown + 3.0)
    # Once cool, or back from idling, a GPU takes its full clock at once; near the limit it climbs in steps.
    near = heat > card.slowdown - 3.0
    sought = np.where(hot, clock - card.step * (4.0 + 6.0 * very), np.where(near, clock + card.step * 3.0, top))
    sought = np.minimum(sought, np.where(capped, allowed, top))
    sought = np.where(weather.brake[i], 0.5 * card.clock, np.maximum(sought, 0.3 * card.clock * busy))
    sought = np.where(busy, sought, top)
    warm = busy & (sought < 0.985 * card.clock) & ~capped & ~weather.brake[i]
    reasons = reasons | np.where(capped, POWER_CAP, 0) | np.where(hot | warm, SW_THERMAL, 0)
    reasons = (
        reasons | np.where(very, HW_THERMAL | HW_SLOWDOWN, 0) | np.where(weather.brake[i], POWER_BRAKE | HW_SLOWDOWN, 0)
    )
    return np.round(sought / card.step) * card.step, reasons


def smi_csv(out: Farm) -> str:
    """The telemetry as `nvidia-smi --query-gpu=… --format=csv -l` writes it: local clock without zone, four header variants."""
    units = out.variant % 2 == 0
    masks = out.variant < 2
    host = out.hosts[0] is not None
    header = ["timestamp", *(["hostname"] if host else []), "index", "name", "uuid", "temperature.gpu", "temperature.memory",
              "power.draw [W]", "power.limit [W]", "clocks.current.sm [MHz]", "clocks.max.sm [MHz]", "utilization.gpu [%]",
              "ecc.errors.uncorrected.volatile.total"]  # fmt: skip
    named = (
        ("sw_power_cap", POWER_CAP),
        ("sw_thermal_slowdown", SW_THERMAL),
        ("hw_thermal_slowdown", HW_THERMAL),
        ("hw_power_brake_slowdown", POWER_BRAKE),
    )
    header += ["clocks_event_reasons.active"] if masks else [f"clocks_throttle_reasons.{name}" for name, _ in named]
    lines = [", ".join(header)]
    watt, mega, percent = (" W", " MHz", " %") if units else ("", "", "")
    for i, moment in enumerate(out.time):
        stamp = datetime.fromtimestamp(float(moment), UTC).strftime("%Y/%m/%d %H:%M:%S.%f")[:-3]
        for gpu in range(out.clock.shape[1]):
            mask = int(out.reasons[i, gpu])
            warm = out.temperature[i, gpu]
            cells = [stamp, *([str(out.hosts[gpu])] if host else []), str(gpu), out.card.name, f"GPU-{gpu:08x}-5d1a-4c07-9e3b-0123456789ab",
                     f"{warm:.0f}", f"{warm + 7:.0f}" if out.card.memory_sensor else "N/A", f"{out.power[i, gpu]:.2f}{watt}",
                     f"{out.limit[i, gpu]:.2f}{watt}", f"{out.clock[i, gpu]:.0f}{mega}", f"{out.card.clock}{mega}",
                     f"{100 * out.load[i, gpu]:.0f}{percent}", f"{out.uncorrected[i, gpu]:.0f}"]  # fmt: skip
            cells += [f"0x{mask:016x}"] if masks else ["Active" if mask & bit else "Not Active" for _, bit in named]
            lines.append(", ".join(cells))
    return "\n".join(lines) + "\n"
