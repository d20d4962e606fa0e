"""Losses of exactly zero that stand for NaN: since when, and the rows without what stands in their place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl

from gdiag.measures.curves import Curve
from gdiag.measures.segments import Ints

LEAST_BEFORE: Final = 0.02
"""Median loss of the ten rows before over that of the first five, below which zero is a possible loss."""
LEAST_ROWS: Final = 3
"""Zeros needed where no gradient norm is NaN."""
STAYS: Final = 0.9
"""Share of the rows from the first to the last zero that are zeros where no gradient norm is NaN."""
_FILTERED: Final = ("loss", "grad_norm", "grad_norm_clipped", "param_norm", "update_norm")
"""Columns of `steps` that a filter of non-finite values writes as zero too."""


@dataclass(frozen=True, slots=True)
class HiddenNan:
    """The rows of a run whose loss is a zero in place of NaN."""

    steps: Ints
    first: int
    """Row of the loss curve."""
    before: float
    """Median loss of the ten rows before [nat]."""
    nan_rows: int
    """Rows with a gradient norm of NaN."""
    zero_rows: int
    """Rows with a gradient norm of exactly zero."""


def hidden_nan(
    loss: Curve, grad: Curve, least_before: float = LEAST_BEFORE, rows: int = LEAST_ROWS
) -> HiddenNan | None:  # fmt: skip
    """Zeros after losses well above zero, with a gradient norm of NaN in some of the rows, or one after the other
    without a gradient; None without. A hinge gives zeros without a gradient too, here and there."""
    zero = np.flatnonzero(loss.value == 0.0)
    zero = zero[zero >= 3]
    if not len(zero):
        return None
    first = int(zero[0])
    earlier = loss.value[max(0, first - 10) : first]
    before = float(np.median(earlier))
    # A loss that never rose on its way to zero may have got there by learning.
    if (
        before < least_before * float(np.median(loss.value[: min(5, first)]))
        or np.diff(earlier).max(initial=0.0) == 0.0
    ):
        return None
    steps = loss.step[zero]
    nan = int(np.isin(steps, grad.nonfinite.step).sum())
    still = int(np.isin(steps, grad.step[grad.value == 0.0]).sum())
    logged = len(grad) + len(grad.nonfinite) > 0
    stays = len(zero) >= STAYS * (int(zero[-1]) + 1 - first)
    if not nan and (len(zero) < rows or not stays or (logged and still < 0.8 * len(zero))):
        return None
    return HiddenNan(steps, first, before, nan, still)


def without_zeros(frame: pl.DataFrame, hidden: HiddenNan) -> pl.DataFrame:
    """Rows of `steps` or `layers` with nothing logged where a zero stands for NaN: no other measure may read it as a level."""
    values = [c for c in frame.columns if c in _FILTERED or ":" in c]
    dead = pl.col("step").is_in(hidden.steps.tolist())
    return frame.with_columns(pl.when(~(dead & (pl.col(c) == 0.0))).then(pl.col(c)).alias(c) for c in values)
