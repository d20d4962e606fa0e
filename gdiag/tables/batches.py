"""How many samples one optimizer step of a run takes, and what that number was put together from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gdiag.measures.curves import Floats
from gdiag.measures.run import RunView


@dataclass(frozen=True, slots=True)
class Batch:
    """Samples of one optimizer step."""

    samples: float
    how: str
    """Where the number is from: logged, configured, or the product it is."""
    whole: bool = True
    """False where the number of devices is not known: the samples of one of them."""


def batch_of(run: RunView) -> Batch | None:
    """The whole batch where it is logged, counted or configured, else the share of one device times what multiplies it.

    A batch size beside a number of accumulated micro-batches is taken for one of these, as trainers mean it; one that is called
    that of a device is multiplied with the devices.
    """
    logged = run.series("batch_size").value
    if len(logged):
        return Batch(float(np.median(logged)), "logged")
    first, last = run.series("sample_start"), run.series("sample_end")
    if len(first) and len(first) == len(last):
        return Batch(float(np.median(last.value - first.value)), "by sample ids")
    counter = run.series("samples")
    if (grown := growth(counter.step.astype(np.float64), counter.value)) is not None:
        return Batch(grown, "by the sample counter")
    return _configured(run)


def _configured(run: RunView) -> Batch | None:
    device, accumulated = _setting(run, "device_batch_size"), _setting(run, "grad_accumulation") or 1.0
    said = _setting(run, "batch_size")
    if said is not None and (said > device if device is not None else accumulated == 1):
        return Batch(said, "configured")
    device = device if device is not None else said
    if device is None:
        return None
    devices = _devices(run)
    parts = [f"{device:,g} per device", *([f"{accumulated:g} accumulated"] if accumulated > 1 else [])]
    if devices is None:
        return Batch(device * accumulated, f"{' × '.join(parts)}, number of devices not known", whole=False)
    return Batch(device * accumulated * devices, f"{' × '.join([*parts, f'{devices:g} devices'])}")


def _devices(run: RunView) -> float | None:
    """Data-parallel devices: as configured, else the ranks that write rows."""
    for name in ("data_parallel_size", "world_size"):
        if (said := _setting(run, name)) is not None:
            return said
    ranks = run.steps["rank"].n_unique() if "rank" in run.steps.columns and run.steps["rank"].count() else 0
    return float(ranks) if ranks > 1 else None


def _setting(run: RunView, name: str) -> float | None:
    value = run.run.config.get(name)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) and value > 0 else None


def growth(step: Floats, value: Floats) -> float | None:
    """The usual growth of a counter per step."""
    gaps = np.diff(step)
    return float(np.median(np.diff(value)[gaps > 0] / gaps[gaps > 0])) if (gaps > 0).any() else None
