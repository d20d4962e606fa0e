"""Generated learning-rate logs of known shape: `python -m tests.benchmarks.schedules FIRST_SEED COUNT`.

Independent of the recogniser: schedules as training frameworks compute them, logged with warm-ups, strides, rounding,
step offsets and cut-off ends. The recogniser was tuned on seeds below 1000; figures are reported on seeds from 5000.
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gdiag.measures.schedule import recognise

SHAPES = ("constant", "linear", "cosine", "wsd", "step", "inverse-sqrt", "exponential", "restarts")


@dataclass(frozen=True)
class Case:
    """One generated log."""

    shape: str
    step: NDArray[np.int64]
    lr: NDArray[np.float64]
    warmup: int
    """Steps of linear warm-up."""
    peak: float
    decay_start: int | None
    """Step where a WSD schedule begins to fall."""
    stride: int


def case(seed: int) -> Case:
    """The generated log of one seed; shapes take turns."""
    rng = np.random.default_rng(seed)
    shape = SHAPES[seed % len(SHAPES)]
    total = int(rng.choice([600, 1000, 2500, 5000, 12_000, 40_000, 100_000]))
    stride = int(rng.choice([1, 1, 5, 10, 25, 50]))
    while total / stride < 60:
        stride = max(1, stride // 2)
    peak = float(rng.choice([1.0, 1.5, 2.0, 3.0, 5.0, 6.0, 8.0]) * 10.0 ** rng.integers(-5, -1))
    warmup = int(rng.choice([0.0, 0.01, 0.03, 0.05, 0.1]) * total)
    floor = float(rng.choice([0.0, 0.01, 0.1, 0.2]))
    t = np.arange(total)
    body, decay_start = _body(shape, t, total, warmup, floor, rng)
    if shape == "inverse-sqrt" and not warmup:
        warmup = max(1, total // 50)
        body, decay_start = _body(shape, t, total, warmup, floor, rng)
    offset = int(rng.integers(0, 2))
    lr = peak * np.where(t < warmup, (t + offset) / max(1, warmup), body)
    first = int(rng.choice([0, 1, 1, stride]))
    step = np.arange(0, total, stride)
    kept = 1.0 if shape in ("step", "restarts", "wsd") else float(rng.choice([1.0, 1.0, 0.9, 0.75]))
    step = step[: max(40, int(len(step) * kept))]
    values = _printed(lr[step], peak, rng)
    return Case(shape, step.astype(np.int64) + first, values, warmup, peak, decay_start, stride)


def _body(
    shape: str, t: NDArray[np.int64], total: int, warmup: int, floor: float, rng: np.random.Generator
) -> tuple[NDArray[np.float64], int | None]:
    u = np.clip((t - warmup) / max(1, total - warmup), 0, 1)
    match shape:
        case "constant":
            return np.ones(total), None
        case "linear":
            return floor + (1 - floor) * (1 - u), None
        case "cosine":
            return floor + (1 - floor) * 0.5 * (1 + np.cos(np.pi * u)), None
        case "inverse-sqrt":
            return np.sqrt(warmup / np.maximum(t, 1.0)), None
        case "exponential":
            return float(rng.choice([0.5, 0.1, 0.02, 0.005])) ** u, None
        case "step":
            gamma = float(rng.choice([0.1, 0.3, 0.316, 0.5]))
            edges = np.sort(rng.choice(np.arange(0.2, 0.95, 0.05), size=int(rng.integers(1, 5)), replace=False))
            return gamma ** np.searchsorted(edges, u, side="right").astype(np.float64), None
        case "wsd":
            start = float(rng.choice([0.5, 0.7, 0.8, 0.9]))
            v = np.clip((u - start) / (1 - start), 0, 1)
            fall = [1 - v, 0.5 * (1 + np.cos(np.pi * v)), 1 - np.sqrt(v)][int(rng.integers(0, 3))]
            return floor + (1 - floor) * fall, int(warmup + start * (total - warmup))
        case _:
            cycles = int(rng.integers(2, 6))
            return floor + (1 - floor) * 0.5 * (1 + np.cos(np.pi * ((u * cycles) % 1.0))), None


def _printed(lr: NDArray[np.float64], peak: float, rng: np.random.Generator) -> NDArray[np.float64]:
    match int(rng.integers(0, 3)):
        case 0:
            return lr
        case 1:
            return np.array([float(f"{v:.3e}") for v in lr])
        case _:
            unit = 10.0 ** np.floor(np.log10(peak) - 1.7)
            rounded: NDArray[np.float64] = np.rint(lr / unit) * unit
            return rounded


def confusion(first: int, count: int) -> Counter[tuple[str, str]]:
    """(true, recognised) pairs over `count` seeds."""
    found: Counter[tuple[str, str]] = Counter()
    for seed in range(first, first + count):
        given = case(seed)
        seen = recognise(given.step, given.lr)
        label = "none" if seen is None else seen.shape + (" with jumps" if seen.jumps else "")
        found[given.shape, label] += 1
    return found


if __name__ == "__main__":
    result = confusion(int(sys.argv[1]), int(sys.argv[2]))
    right = sum(n for (true, seen), n in result.items() if true == seen)
    sys.stdout.write(f"{right}/{result.total()} = {right / result.total():.3f}\n")
    for (true, seen), n in sorted(result.items()):
        sys.stdout.write(f"  {true:14s} {seen:26s} {n}\n")
