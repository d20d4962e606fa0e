"""Least-squares shapes of a decaying learning rate: which curve explains a falling piece, and how well."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Decay = Literal["linear", "cosine", "inverse-sqrt", "exponential", "one-minus-sqrt", "quadratic", "unknown"]

TIE = 1.3
"""A later shape of `ORDER` must explain this many times better than an earlier one: simple shapes first."""
LEAST_SHARE = 1e-6
"""Share of the peak below which a value says nothing about powers or logarithms."""
ORDER: tuple[Decay, ...] = ("linear", "cosine", "inverse-sqrt", "exponential", "one-minus-sqrt", "quadratic")


@dataclass(frozen=True, slots=True)
class Fit:
    """A shape and its error."""

    shape: Decay
    error: float
    """Root mean square residual over the range of the piece."""
    end: float | None = None
    """Step where a cosine reaches its floor, which may lie behind the last row."""


def fit_decay(x: Floats, y: Floats, *, origin: float, reaches_floor: bool, quantum: float = 0.0) -> Fit:
    """The simplest shape that explains a falling piece.

    Args:
        x: steps (n,), increasing, n >= 3.
        y: learning rates (n,), mostly falling.
        origin: step that time-based shapes may count from (where the schedule itself starts).
        reaches_floor: the last row is where the decay ends.
        quantum: spacing of the printed values; smaller differences of error mean nothing.
    """
    span = float(np.ptp(y)) or 1.0
    noise = 0.3 * quantum / span + 1e-4
    fits = [
        Fit("linear", _line_error(x, y) / span),
        _cosine(x, y, span, origin, reaches_floor),
        Fit("inverse-sqrt", _power_error(x, y, -2.0) / span),
        Fit("exponential", _exponential_error(x, y) / span),
        Fit("one-minus-sqrt", _root_error(x, y) / span),
        Fit("quadratic", _square_error(x, y, reaches_floor) / span),
    ]
    best = fits[0]
    for fit in fits[1:]:
        if (fit.error + noise) * TIE < best.error + noise:
            best = fit
    return best


def _rms(residual: Floats) -> float:
    return float(np.sqrt(np.mean(residual**2)))


def _solve(columns: list[Floats], y: Floats, weight: Floats | None = None) -> Floats:
    """The fitted values of a weighted linear regression of `y` on `columns`."""
    design = np.stack(columns, axis=1)
    w = np.ones_like(y) if weight is None else weight
    solution = np.linalg.lstsq(design * w[:, None], y * w, rcond=None)[0]
    fitted: Floats = np.asarray(design @ solution, dtype=np.float64)
    return fitted


def _unit(x: Floats) -> Floats:
    unit: Floats = (x - x[0]) / max(float(x[-1] - x[0]), 1e-12)
    return unit


def _line_error(x: Floats, y: Floats) -> float:
    return _rms(y - _solve([np.ones_like(x), _unit(x)], y))


def _power_error(x: Floats, y: Floats, power: float) -> float:
    """Error of y = (a + b x)^(1/power), fitted on y^power with weights that count errors of y."""
    if y.min() <= LEAST_SHARE * y.max():
        return float("inf")
    scaled = y / y[0]
    transformed = scaled**power
    fitted = _solve([np.ones_like(x), _unit(x)], transformed, scaled ** (1.0 - power))
    if (fitted <= 0).any():
        return float("inf")
    return _rms(scaled - fitted ** (1.0 / power)) * float(y[0])


def _exponential_error(x: Floats, y: Floats) -> float:
    if y.min() <= LEAST_SHARE * y.max():
        return float("inf")
    scaled = y / y[0]
    fitted = _solve([np.ones_like(x), _unit(x)], np.log(scaled), scaled)
    return _rms(scaled - np.exp(fitted)) * float(y[0])


def _root_error(x: Floats, y: Floats) -> float:
    """Error of y = a - b sqrt(u), the decay of warmup-stable-decay schedules that fall fast first."""
    u = _unit(x)
    return _rms(y - _solve([np.ones_like(u), np.sqrt(u)], y))


def _square_error(x: Floats, y: Floats, reaches_floor: bool) -> float:
    """Error of y = f + a (1 - u)^2, whose end may lie behind the last row."""
    u = _unit(x)
    ends = [1.0] if reaches_floor else list(np.geomspace(1.0, 4.0, 15))
    return min(_rms(y - _solve([np.ones_like(u), (e - u) ** 2], y)) for e in ends)


def _cosine(x: Floats, y: Floats, span: float, origin: float, reaches_floor: bool) -> Fit:
    """Half a cosine from the first row, or from `origin`, to an end at or behind the last row."""
    best = Fit("cosine", float("inf"))
    step, last = float(np.median(np.diff(x))), float(x[-1])
    few = np.unique(np.linspace(0, len(x) - 1, 200).astype(np.int64))
    for start in {float(x[0]) + k * step for k in (-1.0, -0.5, 0.0, 0.5)} | {origin}:
        # Printed values reach the floor a little before the schedule does.
        reach = np.linspace(1.0, 1.3, 16) if reaches_floor else np.geomspace(1.0, 6.0, 40)
        ends = start + reach * (last - start)
        for end in ends:
            error, falling = _cosine_error(x[few], y[few], start, float(end))
            if falling and error / span < best.error:
                best = Fit("cosine", error / span, float(end))
    return best


def _cosine_error(x: Floats, y: Floats, start: float, end: float) -> tuple[float, bool]:
    """Error of y = f + a cos, and whether a is positive."""
    phase = np.cos(np.pi * np.clip((x - start) / (end - start), 0.0, 1.0))
    phase -= phase.mean()
    off = y - y.mean()
    slope = float(phase @ off) / max(float(phase @ phase), 1e-300)
    return _rms(off - slope * phase), slope > 0
