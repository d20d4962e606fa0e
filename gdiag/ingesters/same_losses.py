"""Whether two curves of losses are those of one run: the same steps, and losses that differ by rounding only."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl

_COLUMNS: Final = ("loss", "eval_loss")
_SAME: Final = 0.01
"""Relative difference of losses up to which two runs are worth being compared: fewer digits are not written."""
_EXACT: Final = 2e-5
"""The same up to which two losses of one run may differ where both files write many digits: single precision, and sums of it."""
_DIGITS: Final = range(1, 6)
"""Numbers of decimals and of significant digits that count as few."""
AGREE: Final = 0.8
LEAST: Final = 3
"""Steps in common that it takes at least."""
PROBES: Final = 16
Steps = npt.NDArray[np.int64]
Losses = npt.NDArray[np.float64]
Curve = tuple[Steps, Losses]
"""Steps, rising and each once, and the losses at them."""


def curves(steps: pl.DataFrame | None) -> dict[str, Curve]:
    """The curve of each column of losses."""
    if steps is None:
        return {}
    tables = {
        name: steps.select("step", name).drop_nulls().unique("step", keep="last").sort("step")
        for name in _COLUMNS
        if name in steps.columns
    }
    return {name: (table["step"].to_numpy(), table[name].to_numpy()) for name, table in tables.items()}


def same(a: dict[str, Curve], b: dict[str, Curve]) -> bool:
    """Whether two runs have the same losses, of training or of evaluation, on the same steps.

    One column will do: a file of evaluations may call its loss over the training set what the other calls that of batches,
    at few of whose steps it stands. Where the losses of training have steps in common and differ, nothing else will.
    """
    if "loss" in a and "loss" in b and _differ(a["loss"], b["loss"]):
        return False
    return any(_same(a[name], b[name]) for name in a if name in b)


def _differ(left: Curve, right: Curve) -> bool:
    """Whether two curves have steps in common and other losses there."""
    if not (len(left[0]) and len(right[0])):
        return False
    both, close = _close(left, right)
    return both >= LEAST and not (close >= AGREE and _rounded(left, right))


def _same(left: Curve, right: Curve) -> bool:
    if not (len(left[0]) and len(right[0])):
        return False
    few = len(right[0]) // PROBES
    if few > 1:  # most files of a folder are no twins, which a few places tell
        some, close = _close(left, (right[0][::few], right[1][::few]))
        if some >= PROBES // 2 and close < 0.5 * AGREE:
            return False
    both, close = _close(left, right)
    alike = bool(both >= least_shared(len(left[0]), len(right[0])) and close >= AGREE)
    return alike and _telling(left, right) and _rounded(left, right)


def _telling(left: Curve, right: Curve) -> bool:
    """Whether the losses at common steps change: all runs that broke down, or stay at chance, have the same ones."""
    at = np.isin(right[0], left[0], assume_unique=True)
    return len(np.unique(right[1][at & np.isfinite(right[1])])) >= LEAST


def _rounded(left: Curve, right: Curve) -> bool:
    """Whether the losses differ by what the fewer digits of the two leave out: other seeds of one configuration come closer than 1 %."""
    _, at, other = np.intersect1d(left[0], right[0], assume_unique=True, return_indices=True)
    x, y = left[1][at], right[1][other]
    here = np.isfinite(x) & np.isfinite(y)
    x, y = x[here], y[here]
    if not len(x):
        return True
    unit = np.maximum(_unit(x), _unit(y))
    return float(np.mean(np.abs(x - y) <= 0.51 * unit + _EXACT * np.abs(y))) >= AGREE


def _unit(losses: Losses) -> Losses:
    """One unit in the last place written of each loss, by decimals or by significant digits, the larger; 0 where there are many."""
    size = np.abs(losses)
    whole = 10.0 ** np.floor(np.log10(np.where(size > 0, size, 1.0)))
    unit = np.zeros(len(losses))
    for digits in _DIGITS:
        for one in (np.full(len(losses), 10.0**-digits), whole * 10.0 ** (1 - digits)):
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                there = losses / one
                off = float(np.abs(there - np.round(there)).max())
            if off < 1e-6:
                unit = np.maximum(unit, one)
    return unit


def least_shared(left: int | Steps, right: int) -> Losses:
    """Steps in common that it takes."""
    return np.maximum(float(LEAST), 0.3 * np.minimum(left, right))


def _close(left: Curve, right: Curve) -> tuple[int, float]:
    """How many steps both have, and the share of them at which the losses are the same."""
    at = np.searchsorted(left[0], right[0]).clip(max=len(left[0]) - 1)
    both = left[0][at] == right[0]
    close = nearly(left[1][at][both], right[1][both])
    return len(close), float(close.mean()) if len(close) else 0.0


def nearly(x: Losses, y: Losses) -> npt.NDArray[np.bool_]:
    """Which losses differ by rounding only; both may be no number, or the same infinity."""
    with np.errstate(invalid="ignore"):
        alike: npt.NDArray[np.bool_] = np.abs(x - y) <= _SAME * np.abs(y) + 5e-4
        alike &= np.isfinite(y)
        if not np.isfinite(y).all():
            alike |= (x == y) | (np.isnan(x) & np.isnan(y))
    return alike
