"""What else the log says at an onset: gradient, learning rate, data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gdiag.measures.baseline import MAD_TO_SIGMA, Floats
from gdiag.measures.curves import Curve, Path
from gdiag.measures.data import batch_window, own_history_z

GRADIENT_REACH = 20
"""Rows before an onset in which a rising gradient norm is looked for."""
GRADIENT_Z = 6.0
SHORT_RATIO = 10.0
"""Rise over the first rows of an extract that needs no level measured on many."""


@dataclass(frozen=True, slots=True)
class Onset:
    """The columns around one onset; None where they are not logged or say nothing."""

    grad_ratio: float | None = None
    """Largest gradient norm from 20 rows before the onset to the peak, over the median of the rows before those."""
    grad_lead: int | None = None
    """Steps by which the gradient norm's onset comes before the loss's; only where every step is logged."""
    lr: float | None = None
    lr_share_of_peak: float | None = None
    """Learning rate at the onset over the highest of the run."""
    lr_ratio: float | None = None
    """Learning rate at the onset over that ten rows before."""
    sample_start: int | None = None
    sample_end: int | None = None
    """Samples consumed by the onset's step: first inclusive, last exclusive."""
    token_entropy_z: float | None = None
    """Token entropy of the onset's batch in robust standard deviations of the batches before."""
    batch_ratio: float | None = None
    """Batch size two rows after the onset over that three rows before."""
    seq_len_ratio: float | None = None
    """The same of the sequence length."""
    time: float | None = None
    """Unix seconds of the onset's row."""


def onset_context(path: Path, onset: int, peak: int, every: int) -> Onset:
    """What the other columns of `path` say at step `onset`; `peak` is the step of the peak, `every` the log interval."""
    ratio, lead = _gradient(path.curve("grad_norm"), onset, peak, every)
    rate, share, change = _rate(path.curve("lr"), onset)
    batch = batch_window(path.curve("sample_start"), path.curve("sample_end"), path.curve("samples"), onset)
    start, end = (batch.first, batch.last) if batch is not None else (None, None)
    return Onset(
        ratio, lead, rate, share, change, start, end, own_history_z(path.curve("token_entropy"), onset),
        _step(path.curve("batch_size"), onset), _step(path.curve("seq_len"), onset), _exact(path.curve("time"), onset),
    )  # fmt: skip


def _gradient(curve: Curve, onset: int, peak: int, every: int) -> tuple[float | None, int | None]:
    positive = curve.finite.keep(curve.value > 0)
    first, last = np.searchsorted(positive.step, [onset, peak + 1])
    start = max(0, int(first) - GRADIENT_REACH)
    before = positive.value[max(0, start - 100) : start]
    around = positive.value[start : int(last)]
    if len(before) < 8 or not len(around):
        return _short_run_up(positive.step[: int(last)], positive.value[: int(last)], int(first), onset, every)
    usual = float(np.median(before))
    ratio = float(around.max()) / usual
    if every > 1:
        return ratio, None
    log = np.log(before)
    sigma = max(MAD_TO_SIGMA * float(np.median(np.abs(log - np.median(log)))), 0.02)
    high = np.log(positive.value[start : int(last) + 5]) - np.log(usual) > GRADIENT_Z * sigma
    # Two calm rows in a row end a run-up: what stood out before them was a row of its own.
    calm = ~high[: int(first) - start]
    ends = np.flatnonzero(calm[1:] & calm[:-1])
    begin = int(ends[-1]) + 2 if len(ends) else 0
    if not high[begin:].any():
        return ratio, None
    return ratio, onset - int(positive.step[start + begin + int(np.argmax(high[begin:]))])


def _short_run_up(
    step: NDArray[np.int64], value: Floats, first: int, onset: int, every: int
) -> tuple[float | None, int | None]:  # fmt: skip
    """The same where an extract holds too few rows before the onset for a level: the first three stand for it.

    Rows count as raised from the last one on that is below tenfold; only such a rise is beyond doubt.
    """
    if first < 4 or every > 1:
        return None, None
    usual = float(np.median(value[:3]))
    low = np.flatnonzero(value[:first] < SHORT_RATIO * usual)
    raised = int(low[-1]) + 1 if len(low) else 0
    return (float(value.max()) / usual, onset - int(step[raised])) if 0 < raised < first else (None, None)


def _rate(curve: Curve, onset: int) -> tuple[float | None, float | None, float | None]:
    rate = curve.at(onset)
    if rate is None:
        return None, None, None
    peak = float(curve.value.max())
    row = int(np.searchsorted(curve.step, onset, side="right")) - 1
    before = float(curve.value[max(0, row - 10)])
    return rate, rate / peak if peak > 0 else None, rate / before if before > 0 else None


def _step(curve: Curve, onset: int) -> float | None:
    """The column two rows after `onset` over three rows before; None where it is not logged around."""
    row = int(np.searchsorted(curve.step, onset))
    if row < 3 or row >= len(curve) or curve.value[row - 3] <= 0:
        return None
    return float(curve.value[min(row + 2, len(curve) - 1)] / curve.value[row - 3])


def _exact(curve: Curve, step: int) -> float | None:
    row = int(np.searchsorted(curve.step, step))
    return float(curve.value[row]) if row < len(curve) and curve.step[row] == step else None
