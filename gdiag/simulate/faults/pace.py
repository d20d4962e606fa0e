"""Faults of the step time without telemetry."""

from __future__ import annotations

from typing import Final

import numpy as np

from gdiag.simulate.arrays import Floats
from gdiag.simulate.faults.fault import Fault, needs
from gdiag.simulate.forces import Forces
from gdiag.simulate.truth import Event


def _straggler(forces: Forces) -> list[Event]:
    at, rank = forces.pick(0.25, 0.6), int(forces.rng.integers(forces.model.ranks))
    forces.rank_compute[at:, rank] += float(forces.rng.uniform(0.15, 0.6))
    return [
        Event(
            "straggler",
            ("straggler",),
            ("straggler", "step_time_shift"),
            forces.seen(at),
            rank=rank,
            slow=True,
            tolerates_more=True,
        )
    ]


def _drift(forces: Forces) -> list[Event]:
    at = forces.pick(0.2, 0.5)
    grown = np.clip((np.arange(forces.n) - at) / (forces.n - at), 0.0, None)
    forces.compute += float(forces.rng.uniform(0.15, 0.45)) * grown
    causes = ("unknown_step_time_drift", "memory_pressure", "unknown")
    return [Event("step_time_drift", causes, ("step_time_drift", "step_time_shift"), forces.seen(at), slow=True)]


def _shift(forces: Forces) -> list[Event]:
    at = forces.pick(0.3, 0.7)
    forces.compute[at:] += float(forces.rng.uniform(0.12, 0.5))
    causes = ("unknown_step_time_drift", "config_change", "thermal_throttling", "unknown", "straggler")
    return [Event("step_time_shift", causes, ("step_time_shift", "step_time_drift"), forces.seen(at), slow=True)]


def _pause(forces: Forces) -> list[Event]:
    period = int(forces.rng.choice([100, 190, 250, 300])) if forces.n > 1500 else int(forces.rng.choice([50, 90, 125]))
    forces.pause[period::period] = forces.model.step_time * float(forces.rng.uniform(0.6, 5.0))
    return [Event("periodic_pause", ("periodic_pause",), ("periodic_slow_steps",), forces.seen(period), whole_run=True, benign=True,
                  tolerates_more=True, period=period)]  # fmt: skip


def _bursts(forces: Forces, column: Floats, low: float, high: float) -> int:
    """Bursts of slow steps over a tenth of the run; their first step."""
    at = forces.pick(0.3, 0.7)
    window = slice(at, at + max(40, forces.n // 8))
    slow = forces.rng.random(forces.n) < 0.35
    slow[at] = True
    column[window] += np.where(slow, forces.rng.uniform(low, high, forces.n), 0.0)[window]
    return at


def _stall(forces: Forces) -> list[Event]:
    at = _bursts(forces, forces.data, 2.5, 4.5)
    return [
        Event(
            "dataloader_stall",
            ("dataloader_stall",),
            ("slow_steps", "step_time_shift"),
            forces.seen(at),
            slow=True,
            tolerates_more=True,
        )
    ]


def _congestion(forces: Forces) -> list[Event]:
    at = _bursts(forces, forces.comm, 0.8, 2.5)
    return [
        Event(
            "network_congestion",
            ("network_congestion",),
            ("slow_steps", "step_time_shift"),
            forces.seen(at),
            slow=True,
            tolerates_more=True,
        )
    ]


def _link(forces: Forces) -> list[Event]:
    """Steps are slow where packets arrive damaged and have to be sent again."""
    at = _bursts(forces, forces.comm, 0.8, 2.5)
    forces.port_errors = np.where(forces.comm > 0, forces.rng.poisson(12.0, forces.n), 0).astype(np.float64)
    return [
        Event(
            "link_errors",
            ("link_fault",),
            ("slow_steps", "step_time_shift", "slow_collective", "port_errors"),
            forces.seen(at),
            slow=True,
            tolerates_more=True,
        )
    ]


def _memory(forces: Forces) -> list[Event]:
    at = forces.pick(0.1, 0.2)
    forces.memory += float(forces.rng.uniform(0.15, 0.3)) * np.clip(
        (np.arange(forces.n) - at) / (forces.n - at), 0.0, None
    )
    return [Event("memory_growth", ("memory_pressure",), ("memory_growth",), forces.seen(at), whole_run=True)]


_TIME: Final = needs("time")
FAULTS: Final = (
    Fault("straggler", "one replica computes more slowly from some step on", _straggler, _TIME | needs("ranks", "parts"), sudden=False),
    Fault("step-time-drift", "steps take longer and longer", _drift, _TIME, sudden=False),
    Fault("step-time-shift", "steps take longer from one step on", _shift, _TIME, sudden=False),
    Fault("periodic-pause", "a pause every so many steps", _pause, _TIME, True, "a pause at a fixed period (checkpoint or evaluation)", sudden=False),
    Fault("dataloader-stall", "bursts of steps that wait for data", _stall, _TIME | needs("parts"), sudden=False),
    Fault("network-congestion", "bursts of steps that wait for the network", _congestion, _TIME | needs("parts"), sudden=False),
    Fault("link-errors", "bursts of steps that wait for the network while a port counts errors", _link, _TIME | needs("parts"), sudden=False),
    Fault("memory-growth", "allocated memory grows", _memory, _TIME | needs("memory"), sudden=False),
)  # fmt: skip
