"""Learning curves made by rule: noise families, healthy traps and episodes with known onset."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Noise = Literal["gauss", "sft", "heavy", "ar", "skew"]
NOISES: tuple[Noise, ...] = ("gauss", "sft", "heavy", "ar", "skew")


def noise(kind: Noise, rows: int, rng: np.random.Generator) -> Floats:
    """Relative deviations: 3.5 % normal, 15-30 % normal, 3 % of rows heavy, autocorrelated, skewed."""
    if kind == "sft":
        return rng.normal(0, rng.uniform(0.15, 0.30), rows)
    if kind == "heavy":
        return rng.normal(0, 0.02, rows) + (rng.random(rows) < 0.03) * rng.exponential(0.15, rows)
    if kind == "ar":
        steps = rng.normal(0, 0.02, rows)
        for i in range(1, rows):
            steps[i] += 0.6 * steps[i - 1]
        return steps
    if kind == "skew":
        return 0.015 * (rng.gamma(1.2, 1.0, rows) - 1.2)
    return rng.normal(0, 0.035, rows)


def healthy(
    rows: int, kind: Noise, seed: int, *, start: float = 10.8, floor: float = 2.7, stops: int | None = None
) -> Floats:  # fmt: skip
    """A power-law descent from `start` towards `floor` with noise proportional to the level; flat from row `stops` on."""
    rng = np.random.default_rng(seed)
    shape = rng.uniform(0.3, 0.6)
    knee = rng.uniform(10, 40)
    level = floor + (start - floor) * (1 + np.minimum(np.arange(rows), stops or rows) / knee) ** -shape
    return level * np.exp(noise(kind, rows, rng))


def spike(rows: int, onset: int, height: float, half_life: float, *, rise: int = 2) -> Floats:
    """An excess that climbs in `rise` rows and decays with `half_life` rows."""
    at = np.arange(rows) - onset
    up = np.clip((at + 1) / rise, 0, 1)
    return height * up * 0.5 ** (np.maximum(0, at - rise + 1) / half_life)


def climb(rows: int, onset: int, height: float, length: int) -> Floats:
    """An excess that climbs to `height` in `length` rows and stays."""
    return height * np.clip((np.arange(rows) - onset) / length, 0, 1)


EPISODES: dict[str, Callable[[int, int, float], Floats]] = {
    "single_spike": lambda rows, onset, size: spike(rows, onset, size, 12),
    "step_up": lambda rows, onset, size: climb(rows, onset, 0.3 * size, 3),
    "divergence": lambda rows, onset, size: climb(rows, onset, 4.0 + size, 150),
}
