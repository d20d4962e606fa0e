"""Whether a larger batch may be behind longer steps: what the noise of loss and gradient norm does where steps grow.

The mean over a batch `r` times as large has 1/√r of the noise, and so has the gradient (McCandlish et al. 2018, An
Empirical Model of Large-Batch Training, section 2); a machine that slows down leaves both as they were. Noise also falls
slowly with the steps and with the learning rate, which is told apart where the rate is logged.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log, pi, sqrt
from typing import Final, Literal

import numpy as np

from gdiag.measures.baseline import mad_sigma
from gdiag.measures.curves import Curve, Floats

ROWS: Final = 1000
"""Rows on either side whose noise is compared."""
NEAR: Final = 200
"""Rows on either side that must not tell the opposite: noise that fades falls by less in so few."""
BLOCK: Final = 25
LEAST_BLOCKS: Final = 4
SURE: Final = 3.0
"""Log-likelihood ratio from which one story is told, about twenty to one."""
MOST: Final = 4.0
"""The most that one column may say."""
LOOSE: Final = 0.2
"""Relative error of the exponent: part of the noise is not the batch's, and part of a step does not grow with it."""
SLOPE: Final = -0.15
"""Exponent with which noise falls with the steps, …"""
SLOPE_SPREAD: Final = 0.2
"""… and how far runs lie from it."""
RATE_POWER: Final = 0.25
"""Exponent with which noise moves with the learning rate, …"""
RATE_POWER_SPREAD: Final = 0.5
"""… and how far runs lie from it: in some not at all, in others in proportion."""
LEAST_RATE: Final = 1e-3
"""Share of the highest rate below which noise follows it no further."""
CALM: Final = 0.06
"""How far, in the logarithm, noise moves on its own."""


@dataclass(frozen=True, slots=True)
class Growth:
    """What noise says of a batch that grew as much as the time of a step."""

    expected: float
    """Noise of the larger batch over that of the smaller one."""
    loss: float | None
    """Noise of the loss after over before; None where too few rows tell it."""
    grad_norm: float | None
    evidence: float
    """Log-likelihood ratio of a larger batch over an unchanged one [nat]."""

    @property
    def verdict(self) -> Literal["grown", "unchanged", "open"]:
        """What the noise decides."""
        return "grown" if self.evidence >= SURE else "unchanged" if self.evidence <= -SURE else "open"


def growth(loss: Curve, grad_norm: Curve, lr: Curve, before: int, after: int, ratio: float) -> Growth:
    """Hold the noise of rows up to step `before` against that of rows from step `after` on.

    lr: empty where no rate is logged. ratio: time of a step after over before, above 1.
    """
    expected = -0.5 * log(ratio)
    seen, near = ([_change(curve, lr, before, after, rows) for curve in (loss, grad_norm)] for rows in (ROWS, NEAR))
    evidence, close = _evidence(seen, expected), _evidence(near, expected)
    if close < 0:
        evidence = min(evidence, close)
    ratios = [None if change is None else float(np.exp(change[0])) for change in seen]
    return Growth(float(np.exp(expected)), ratios[0], ratios[1], evidence)


def _evidence(seen: list[tuple[float, float] | None], expected: float) -> float:
    """Log-likelihood ratio of noise that moved by `expected` over noise that did not, summed over the columns that tell."""
    evidence = 0.0
    for change in seen:
        if change is not None:
            moved, error = change
            grown = _log_normal(moved - expected, sqrt(error**2 + (LOOSE * expected) ** 2 + CALM**2))
            evidence += float(np.clip(grown - _log_normal(moved, sqrt(error**2 + CALM**2)), -MOST, MOST))
    return evidence


def _change(curve: Curve, lr: Curve, before: int, after: int, rows: int) -> tuple[float, float] | None:
    """Logarithm of the noise after over before, and its standard error; None where rows are few or rounded.

    Noise falls with the loss, as a power of the steps, and with the rate: a jump is told from both by least squares.
    """
    end, start = (int(np.searchsorted(curve.step, step)) for step in (before + 1, after))
    sides = [slice(max(0, end - rows), end), slice(start, start + rows)]
    levels = [_noise(curve.value[side]) for side in sides]
    if any(len(level) < LEAST_BLOCKS for level in levels):
        return None
    seen = np.concatenate(levels)
    elapsed = np.concatenate(
        [
            _middles(curve.step[side] - curve.step[0] + 1.0, len(level))
            for side, level in zip(sides, levels, strict=True)
        ]
    )
    jump = np.repeat([0.0, 1.0], [len(level) for level in levels])
    columns = np.column_stack(
        (np.ones(len(seen)), _centred(np.log(elapsed)), _centred(_log_rate(lr, elapsed + curve.step[0] - 1)), jump)
    )
    spread = max(2 / BLOCK, sum(float(np.var(level)) * len(level) for level in levels) / (len(seen) - 2))
    known = np.diag([0.0, spread / SLOPE_SPREAD**2, spread / RATE_POWER_SPREAD**2, 0.0])
    precision = columns.T @ columns + known
    found = np.linalg.solve(precision, columns.T @ seen + known @ np.array([0.0, SLOPE, RATE_POWER, 0.0]))
    return float(found[3]), sqrt(spread * float(np.linalg.inv(precision)[3, 3]))


def _log_rate(lr: Curve, step: Floats) -> Floats:
    """Logarithm of the learning rate at `step`; zeros where it is not logged."""
    peak = float(lr.value.max()) if len(lr) else 0.0
    if peak <= 0:
        return np.zeros(len(step))
    return np.asarray(np.log(np.maximum(np.interp(step, lr.step, lr.value) / peak, LEAST_RATE)))


def _centred(value: Floats) -> Floats:
    return np.asarray(value - value.mean())


def _middles(elapsed: Floats, blocks: int) -> Floats:
    return np.array([float(np.median(part)) for part in np.array_split(elapsed, blocks)])


def _noise(value: Floats) -> Floats:
    """Logarithm of the spread of row-to-row differences, block by block; empty where rounding shows."""
    if len(value) <= BLOCK or len(np.unique(value)) < len(value) / 4:
        return np.empty(0)
    step = np.diff(value)
    sigma = np.array([mad_sigma(part) for part in np.array_split(step, len(step) // BLOCK)])
    return np.asarray(np.log(sigma)) if (sigma > 0).all() else np.empty(0)


def _log_normal(x: float, sigma: float) -> float:
    return -0.5 * (x / sigma) ** 2 - log(sigma * sqrt(2 * pi))
