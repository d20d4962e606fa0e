"""Learning-rate schedules as shares of the peak."""

from __future__ import annotations

from typing import Final, Literal, get_args

import numpy as np

from gdiag.simulate.arrays import Floats, Ints

Shape = Literal["cosine", "linear", "wsd", "constant", "step", "sqrt"]
SHAPES: Final[tuple[Shape, ...]] = get_args(Shape)


def schedule(shape: Shape, total: int, warmup: int, floor: float, step: Ints) -> Floats:
    """Share of the peak at each step, in [0, 1]; linear warm-up over `warmup` steps, then `shape` down to `floor`."""
    done = np.clip((step - warmup) / max(1, total - warmup), 0.0, 1.0)
    if shape == "cosine":
        body = floor + (1 - floor) * 0.5 * (1 + np.cos(np.pi * done))
    elif shape == "linear":
        body = 1 - (1 - floor) * done
    elif shape == "wsd":
        body = np.where(done < 0.8, 1.0, 1 - (1 - floor) * (done - 0.8) / 0.2)
    elif shape == "step":
        body = 0.1 ** (np.digitize(done, (0.5, 0.8)).astype(np.float64))
    elif shape == "sqrt":
        body = np.sqrt(max(1, warmup) / np.maximum(step, max(1, warmup)))
    else:
        body = np.ones(len(step))
    return np.where(step < warmup, (step + 1) / max(1, warmup), body)
