"""Data behind a step: the window of samples it consumed, its batch statistics, and samples seen twice."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gdiag.measures.curves import Curve

HISTORY_ROWS = 400
"""Rows around a step that its batch statistics are compared with."""
LEAST_ROWS = 20
LEAST_SHARE = 0.005
STATISTICS = {
    "token_entropy": "token entropy", "duplicate_share": "share of duplicates", "seq_len": "sequence length",
}  # fmt: skip
"""Columns that describe one batch, and what they are called: any of them may show that it differs from all others."""


@dataclass(frozen=True, slots=True)
class Window:
    """Sample ids consumed at a step: first inclusive, last exclusive."""

    first: int
    last: int


def batch_window(start: Curve, end: Curve, samples: Curve, step: int) -> Window | None:
    """The samples of one logged step, from start and end ids or from the cumulative count; None when not logged.

    start, end, samples: the columns sample_start, sample_end and samples along one path.
    """
    first, last = _exactly(start, step), _exactly(end, step)
    if first is not None and last is not None and last >= first:
        return Window(int(first), int(last))
    i = int(np.searchsorted(samples.step, step))
    if i < len(samples) and i > 0 and samples.step[i] == step and samples.value[i] > samples.value[i - 1]:
        return Window(int(samples.value[i - 1]), int(samples.value[i]))
    return None


def _exactly(curve: Curve, step: int) -> float | None:
    i = int(np.searchsorted(curve.step, step))
    return float(curve.value[i]) if i < len(curve) and curve.step[i] == step else None


def own_history_z(curve: Curve, step: int) -> float | None:
    """Robust z of the value at `step` against the rows around it; None when not logged there or too few rows.

    Rows within 20 of the step are left out: a bad shard moves its neighbours as well. A share counts in steps of LEAST_SHARE
    at least: most batches hold no duplicates at all.
    """
    i = int(np.searchsorted(curve.step, step))
    if i >= len(curve) or curve.step[i] != step:
        return None
    low, high = max(0, i - HISTORY_ROWS // 2), i + HISTORY_ROWS // 2
    around = np.concatenate((curve.value[low : max(low, i - 20)], curve.value[i + 21 : high]))
    if len(around) < LEAST_ROWS:
        return None
    centre = float(np.median(around))
    spread = 1.4826 * float(np.median(np.abs(around - centre)))
    return (float(curve.value[i]) - centre) / max(spread, least_spread(curve.name, centre))


def least_spread(name: str, centre: float) -> float:
    """Robust deviation below which that of a statistic of batches does not count."""
    return max(1e-3 * abs(centre), LEAST_SHARE if name == "duplicate_share" else 1e-9)
