"""Batch noise of a loss curve, one value for each batch of data, in units of its family's standard deviation."""

from __future__ import annotations

from typing import Final, Literal, get_args

import numpy as np

from gdiag.simulate.arrays import Floats

Noise = Literal["gauss", "sft", "heavy", "real", "ar"]
NOISES: Final[tuple[Noise, ...]] = get_args(Noise)

SCALES: Final[dict[Noise, tuple[float, float]]] = {
    "gauss": (0.008, 0.035), "sft": (0.15, 0.30), "heavy": (0.008, 0.03), "real": (0.006, 0.02), "ar": (0.008, 0.03),
}  # fmt: skip
"""Family → range of the relative noise of the loss. Small for large batches; fine-tuning on single examples has 15-30 %."""


def batch_noise(family: Noise, count: int, rng: np.random.Generator) -> Floats:
    """White noise of zero mean and about unit variance, (count,); `ar` alone is correlated (lag-1 about 0.5).

    `real` follows what per-step losses of public language-model runs look like: white, right-skewed (skew 1-3), with
    about four hard batches in a thousand. `heavy` is Student's t with three degrees of freedom and 3 % hard batches.
    """
    noise: Floats
    if family == "heavy":
        body = rng.standard_t(3.0, count) / np.sqrt(3.0)
        hard = rng.random(count) < 0.03
        noise = body + hard * rng.exponential(4.0, count) - 0.12
    elif family == "real":
        shape = float(rng.uniform(2.0, 5.0))
        body = (rng.gamma(shape, 1.0, count) - shape) / np.sqrt(shape)
        hard = rng.random(count) < 0.004
        noise = body + hard * rng.exponential(4.0, count) - 0.016
    elif family == "sft":
        shape = 8.0
        noise = (rng.gamma(shape, 1.0, count) - shape) / np.sqrt(shape)
    else:
        noise = rng.standard_normal(count)
        if family == "ar":
            for i in range(1, count):
                noise[i] = 0.5 * noise[i - 1] + 0.866 * noise[i]
    return noise
