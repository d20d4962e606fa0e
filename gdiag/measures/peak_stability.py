"""Stability around the peak learning rate: what loss and gradient norm do when the rate is at its largest."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Literal

import numpy as np

from gdiag.measures.baseline import MAD_TO_SIGMA, MEDIAN_ERROR, mad_sigma
from gdiag.measures.curves import Curve, Floats
from gdiag.measures.schedule import Schedule

Kind = Literal["loss", "gradient"]

WILD = 100.0
"""Gradient norms beyond this multiple of the median come from a run that is out of control: healthy runs stay below 10."""
VIOLENT = 8.0
"""A row of the loss this many times the noise up is violent; in noise of a quarter of the gain a row is half of it up by chance."""
LEVEL_SHARE, START_SHARE = 0.15, 0.02
"""Least rise that counts, over the best before it and over the loss with which the run began."""
SMOOTH = 5
"""Rows over which the loss is smoothed (median) before its rise counts."""


@dataclass(frozen=True, slots=True)
class Instability:
    """Loss or gradients out of control while the rate reaches its peak."""

    kind: Kind
    step: int
    """First step concerned."""
    last_step: int
    lr_share: float
    """Learning rate at the onset over the peak."""
    excess: float
    """Largest smoothed loss after the onset over the best before [nat]."""
    worse_share: float
    """Share of the later rows whose smoothed loss is above the best before it by more than the margin."""
    margin: float
    grad_ratio: float | None
    """Largest gradient norm over its median."""
    wild_rows: int
    """Rows with a gradient norm above 100 times its median, up to the end of the window."""
    ends_nonfinite: bool
    recovered: bool
    lifted: bool
    """The level of many rows is raised after the onset, not only above the lowest of the rows before it."""

    def lasts(self, share: float) -> bool:
        """Whether `share` of the later rows are worse and the level shows it: the lowest of noisy rows is no level."""
        return self.worse_share >= share and (self.lifted or self.kind == "gradient")


def window_end(schedule: Schedule) -> float:
    """Last step that counts as around the peak: as long again as the warm-up, at least a twentieth of the run."""
    span = schedule.last_step - schedule.first_step
    reached = schedule.warmup_end if schedule.warmup_end is not None else schedule.first_step
    after = max(float(schedule.warmup_steps), 0.05 * span, 50 * schedule.interval if not schedule.warmup_steps else 0.0)
    return reached + after


def instability(schedule: Schedule, lr: Curve, loss: Curve, grad: Curve) -> Instability | None:
    """The first loss rise or run of wild gradients around the peak, None when the run passes it quietly."""
    if len(loss) < 12:
        return None
    until = window_end(schedule)
    smooth = _smooth(loss.value)
    noise = _noise(loss.value)
    best = np.minimum.accumulate(smooth)
    least = max(8 * noise / sqrt(SMOOTH), START_SHARE * abs(float(smooth[0])))
    margin = np.maximum(least, LEVEL_SHARE * np.abs(best))
    worse = smooth > best + margin
    rise = _first_run(worse & (loss.step <= until), SMOOTH)
    wild, ratio = _wild(grad, until)
    dead = _dead_from(loss)
    rows = [float(loss.step[rise])] if rise is not None else []
    if len(wild) >= 3:
        rows.append(float(wild[0]))
    if not rows:
        return None
    onset = int(min(rows))
    i = int(np.searchsorted(loss.step, onset))
    # What leaves the best level anew, long after the run had come back, is another story.
    end = _back_until(worse, i, int(np.searchsorted(loss.step, 2 * until - schedule.first_step)))
    after = slice(i, end)
    lasting = float(worse[after].mean()) if i < len(worse) else 1.0
    level = float(best[max(0, i - 1)])
    excess = float(smooth[after].max()) - level if i < len(smooth) else 0.0
    tail = smooth[end - max(SMOOTH, end // 20) : end]
    back = float(np.median(tail)) <= level + float(margin[max(0, i - 1)])
    if back and dead is not None and dead > 2 * until - schedule.first_step:
        dead = None  # long after the peak, of a run that had come back: another story
    recovered = dead is None and back
    kind: Kind = "loss" if rise is not None and (len(wild) < 3 or loss.step[rise] <= wild[0]) else "gradient"
    return Instability(
        kind, onset, int(loss.step[-1]) if dead is None else int(dead), (lr.at(onset) or 0.0) / schedule.peak, excess,
        lasting, float(margin[max(0, i - 1)]), ratio, len(wild), dead is not None, recovered,
        _lifted(loss.value, i, float(margin[max(0, i - 1)])),
    )  # fmt: skip


def _back_until(worse: np.ndarray[tuple[int], np.dtype[np.bool_]], onset: int, near: int) -> int:
    """Rows up to the first worse one after `near` that follows so many calm rows as were worse since `onset`, at least fifty;
    all rows when there is none."""
    calm, bad = 0, 0
    for row, is_worse in enumerate(worse[onset:].tolist(), onset):
        if is_worse and row >= near and calm >= max(10 * SMOOTH, bad):
            return row
        calm, bad = (0, bad + 1) if is_worse else (calm + 1, bad)
    return len(worse)


def _lifted(value: Floats, onset: int, margin: float) -> bool:
    """Whether the median of the rows from `onset` on lies above that of the twenty before: by half a margin, and by three
    standard errors as the scatter of those twenty tells them, for the margin knows only the quietest part of the run.
    Fewer than five rows have no scatter: three quarters of the later rows must then lie above the largest of them.
    """
    before, after = value[max(0, onset - 20) : onset], value[onset : onset + max(20, len(value) // 10)]
    if len(before) < 5:
        return not len(before) or float(np.quantile(after, 0.25)) > float(before.max())
    error = MEDIAN_ERROR * mad_sigma(before) * sqrt(1 / len(before) + 1 / max(1, len(after)))
    return float(np.median(after)) > float(np.median(before)) + max(0.5 * margin, 3 * error)


HIGH = 0.45
"""Share of the loss at the start below which a run has learned what it could, however early: as for a plateau (GD108)."""


@dataclass(frozen=True, slots=True)
class Stalled:
    """A loss that stopped falling before the rate reached its peak and never fell again."""

    step: int
    """First row of the best level reached before the peak."""
    last_step: int
    lr_share: float
    gain_after: float
    """Fall of the loss after the peak [nat]."""
    gain: float
    """Fall over the run [nat]."""
    violent: bool
    """A gradient or loss row around the peak that healthy runs do not have."""
    violent_step: int | None
    grad_ratio: float | None


def stalled(schedule: Schedule, lr: Curve, loss: Curve, grad: Curve) -> Stalled | None:
    """Whether all learning happened in the warm-up; None without one, or with too little of a run after it."""
    if schedule.warmup_end is None or len(loss.nonfinite):
        return None
    peak = int(np.searchsorted(loss.step, schedule.warmup_end))
    after = loss.value[peak:]
    if peak < 10 or len(after) < 5 * peak:
        return None
    start = float(np.median(loss.value[:3]))
    third = max(3, peak // 3)
    at_peak = float(np.median(loss.value[peak - third // 2 : peak + third]))
    parts = np.array_split(after[third:], 8)
    gain_after = at_peak - min(float(np.median(p)) for p in parts)
    gain = start - float(np.median(parts[-1]))
    if gain < 0.2 * abs(start) or gain_after > 0.05 * gain or start - gain < HIGH * start:
        return None
    level = at_peak + max(0.03 * gain, 2 * _noise(loss.value) / sqrt(SMOOTH))
    first = int(np.argmax(_smooth(loss.value) <= level))
    until = window_end(schedule)
    near = (loss.step <= until) & (loss.step > loss.step[first])
    jumps = near & (loss.value > at_peak + max(0.5 * gain, VIOLENT * _noise(loss.value)))
    wild, ratio = _wild(grad, until)
    steps = [float(s) for s in (*loss.step[jumps][:1], *wild[:1])]
    return Stalled(
        int(loss.step[first]), int(loss.step[-1]), (lr.at(int(loss.step[first])) or 0.0) / schedule.peak, gain_after, gain,
        bool(steps), int(min(steps)) if steps else None, ratio,
    )  # fmt: skip


def _smooth(y: Floats) -> Floats:
    padded = np.concatenate((np.repeat(y[:1], SMOOTH // 2), y, np.repeat(y[-1:], SMOOTH // 2)))
    return np.asarray(np.median(np.lib.stride_tricks.sliding_window_view(padded, SMOOTH), axis=1), dtype=np.float64)


def _noise(y: Floats) -> float:
    """Row noise from first differences, from the quietest eighth: a run out of control is loud everywhere else."""
    parts = [p for p in np.array_split(np.abs(np.diff(y)), 8) if len(p)]
    return MEDIAN_ERROR * MAD_TO_SIGMA * min(float(np.median(p)) for p in parts) / sqrt(2)


def _first_run(mask: np.ndarray[tuple[int], np.dtype[np.bool_]], rows: int) -> int | None:
    """Index of the first stretch of `rows` true values."""
    if len(mask) < rows:
        return None
    full = np.lib.stride_tricks.sliding_window_view(mask, rows).all(axis=1)
    return int(np.argmax(full)) if full.any() else None


def _wild(grad: Curve, until: float) -> tuple[Floats, float | None]:
    """Steps up to `until` with a wild gradient norm, and the largest over the median."""
    if len(grad) < 12:
        return np.empty(0), None
    usual = float(np.median(grad.value))
    # Half the rows may be wild: the lower quartile stands for what the run was like before.
    usual = min(usual, 10 * float(np.quantile(grad.value, 0.25)))
    if usual <= 0:
        return np.empty(0), None
    wild = grad.step[(grad.value > WILD * usual) & (grad.step <= until)]
    return wild.astype(np.float64), float(grad.value.max()) / usual


def _dead_from(loss: Curve) -> int | None:
    """First step of the non-finite rows in which the run ends, None when it ends finite."""
    bad = loss.nonfinite.step
    if not len(bad) or (len(loss) and bad[-1] < loss.step[-1]):
        return None
    tail = bad[bad > loss.step[-1]] if len(loss) else bad
    return int(tail[0]) if len(tail) else None
