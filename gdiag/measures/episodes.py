"""Spike episodes: stretches in which a curve stays above its own recent level, apart from isolated outliers.

Loss noise of language-model training is white, skewed and heavy-tailed: single rows at 9-17 robust standard deviations
occur in healthy runs, so one row proves nothing and persistence does. The scan sums winsorised deviations over windows
of several lengths, which no single row can fill.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb

import numpy as np
from numpy.typing import NDArray

from gdiag.measures.baseline import Baseline, Floats, baseline, running_median, warmup_rows
from gdiag.measures.recovery import expected_level, half_life, recovery_row

SCALES = (4, 8, 16, 32)
"""Window lengths in rows."""
WINSOR = 4.0
"""Deviations count up to this many standard deviations: a window of four needs all four rows raised."""
LEAST_JUDGED = 30
"""Rows before an episode that does not come back, from which their noise is known without those behind it."""
DRIFT = 1.5
MERGE_ROWS = 10


@dataclass(frozen=True, slots=True)
class Episode:
    """One stretch above the level; positions are rows of the curve."""

    onset: int
    peak: int
    last: int
    """Last row that is raised."""
    excess: float
    """Peak minus the level expected there, in the curve's unit."""
    z: float
    """`excess` in robust standard deviations of the rows before."""
    strength: float
    """Largest windowed sum, in its own standard deviations over the run."""
    level: float
    """Level before the onset."""
    recovery: int | None
    """First row back at the expected level; None when the curve does not come back."""
    half_life: tuple[float, float] | None
    """Rows in which half of the excess is gone, from and to; None without recovery."""
    after_effect: float
    """Median of the fifty rows after the episode minus the level expected there."""
    settled: float
    """The same over the last third of the rows from the peak to 300 rows after the end."""
    settled_level: float
    """Median of the curve there."""

    @property
    def recovered(self) -> bool:
        """Whether the curve comes back to the level expected without the episode."""
        return self.recovery is not None


@dataclass(frozen=True, slots=True)
class Scan:
    """A curve held against its own recent past."""

    base: Baseline
    z: Floats
    """Deviation of every row in robust standard deviations of the rows before it."""
    strength: Floats
    """Largest windowed sum that starts at each row."""
    episodes: tuple[Episode, ...]
    outliers: NDArray[np.int64]
    """Rows over `outlier_z` outside every episode."""
    warmup: int
    """Rows at the start that were not judged."""

    @property
    def noise(self) -> float:
        """Robust standard deviation around the level, median over the curve."""
        return self.base.noise


def scan(
    value: Floats, *, threshold: float = 6.0, outlier_z: float = 6.0, least: float = 0.0, passes: int = 3
) -> Scan:  # fmt: skip
    """Find the episodes in `value` (finite, in order; take the logarithm of norms and times first).

    Args:
        value: one value per logged row.
        threshold: windowed sums over this, in standard deviations, make an episode.
        outlier_z: rows over this outside episodes are outliers.
        least: smallest peak excess of an episode, in the unit of `value`; three times the noise is always needed.
        passes: rounds of finding, masking and measuring the level again.
    """
    rows = len(value)
    nothing = np.empty(0, dtype=np.int64)
    warmup = warmup_rows(rows)
    if rows < 16:
        flat = np.zeros(rows)
        return Scan(Baseline(value.copy(), flat, 0, 0.0), flat, flat, (), nothing, rows)
    masked = np.zeros(rows, dtype=bool)
    episodes: tuple[Episode, ...] = ()
    base = baseline(value)
    for turn in range(passes):
        z = (value - base.level) / base.scale
        until = _same_noise(rows, episodes, warmup)
        tail = _tail_share(z[:until], masked[:until], warmup) if turn else 0.0
        strength = _strength(z, warmup, threshold, tail, until)
        episodes = _episodes(value, base, z, strength, warmup, threshold, least)
        again = np.zeros(rows, dtype=bool)
        for episode in episodes:
            again[episode.onset : episode.last + 1] = True
        if turn and np.array_equal(again, masked):
            break
        masked = again
        base = baseline(value, masked)
    episodes = _beyond_habit(episodes, strength, masked, threshold)
    z = (value - base.level) / base.scale
    outliers = np.flatnonzero((z > outlier_z) & ~masked & (np.arange(rows) >= warmup))
    return Scan(base, z, strength, episodes, outliers, warmup)


def _beyond_habit(
    episodes: tuple[Episode, ...], strength: Floats, masked: NDArray[np.bool_], threshold: float
) -> tuple[Episode, ...]:  # fmt: skip
    """Episodes without the weak ones of a run in which many other stretches come close to the threshold."""
    near = np.flatnonzero((strength > 0.75 * threshold) & ~masked)
    stretches = 1 + int(np.sum(np.diff(near) > SCALES[-1])) if len(near) else 0
    if stretches < 5 * max(1, len(episodes)):
        return episodes
    return tuple(episode for episode in episodes if episode.z >= 8.0)


def _same_noise(rows: int, episodes: tuple[Episode, ...], warmup: int) -> int:
    """End of the rows whose noise is that around the level before: the first episode that does not come back, if there are enough."""
    end = min((episode.onset for episode in episodes if not episode.recovered), default=rows)
    return end if end >= warmup + LEAST_JUDGED else rows


def _tail_share(z: Floats, masked: NDArray[np.bool_], warmup: int) -> float:
    """Share of rows outside episodes that are raised by over three standard deviations; 0.1 % for normal noise."""
    judged = z[warmup:][~masked[warmup:]]
    return float(np.mean(judged > 3.0)) if len(judged) else 0.0


def _strength(z: Floats, warmup: int, threshold: float, tail: float, until: int) -> Floats:
    """Largest of the forward windowed sums of winsorised deviations, each in its own robust standard deviations up to row `until`.

    Sums are scaled down where so many rows of a window would be raised by chance alone, given the share `tail`, that the
    threshold proves nothing: noise with a heavy tail must fill a short window completely.
    """
    clipped = np.clip(z, -WINSOR, WINSOR)
    total = np.concatenate([[0.0], np.cumsum(clipped)])
    rows = len(z)
    best = np.full(rows, -np.inf)
    for width in SCALES:
        if 3 * width > rows:
            break
        sums = (total[width:] - total[:-width]) / np.sqrt(width)
        judged = sums[warmup : max(until - width, warmup + width)] if len(sums) > warmup + width else sums
        spread = max(1.0, 1.4826 * float(np.median(np.abs(judged - np.median(judged)))))
        needed = (WINSOR * _by_chance(rows, width, tail) - 1.0) / np.sqrt(width)
        best[: len(sums)] = np.maximum(best[: len(sums)], sums / max(spread, needed / threshold))
    best[:warmup] = -np.inf
    return best


def _by_chance(rows: int, width: int, share: float) -> int:
    """How many raised rows in a window chance gives in one of a hundred such runs at most; `width` when always more."""
    for count in range(1, width):
        if rows * comb(width, count) * share**count < 0.01:
            return count
    return width


def _episodes(
    value: Floats, base: Baseline, z: Floats, strength: Floats, warmup: int, threshold: float, least: float
) -> tuple[Episode, ...]:
    hot = np.flatnonzero(strength > threshold)
    if not len(hot):
        return ()
    cut = np.flatnonzero(np.diff(hot) > MERGE_ROWS)
    starts = np.concatenate([[0], cut + 1])
    ends = np.concatenate([cut, [len(hot) - 1]])
    found: list[Episode] = []
    done = 0
    for a, b in zip(hot[starts].tolist(), hot[ends].tolist(), strict=True):
        if b < done:
            continue
        episode = _episode(value, base, z, strength, max(a, warmup, done), b, threshold, least)
        if episode is not None:
            found.append(episode)
            done = episode.last + 1
    return tuple(found)


def _episode(
    value: Floats,
    base: Baseline,
    z: Floats,
    strength: Floats,
    first: int,
    last_hot: int,
    threshold: float,
    least: float,
) -> Episode | None:
    end = min(len(value), last_hot + SCALES[-1])
    onset = first + _onset(z[first:end])
    raised = np.flatnonzero(z[onset:end] > 2.0)
    if not len(raised):
        return None
    last = onset + int(raised[-1])
    scale = float(base.scale[onset])
    expected = expected_level(value, base, onset)
    until = min(len(value), onset + 16)
    early = (value[onset:until] - expected.over(onset, until)) / scale
    if 4 * np.sum(early < -2.0) > np.sum(early > 2.0):  # noise that grows both ways
        return None
    peak = onset + int(np.argmax(value[onset : last + 1]))
    excess = float(value[peak]) - expected(peak)
    if excess < max(least, 3 * base.noise, 3 * scale) or not _rises(value, onset, last, scale):
        return None
    top = float(strength[first : last_hot + 1].max(initial=0.0))
    if top < threshold + 1.0 and excess < 6 * scale:
        return None
    gained = float(np.median(value[:5])) - expected.level
    margin = max(scale, min(0.1 * excess, max(0.1 * gained, 3 * scale)))
    recovery = recovery_row(value, expected, onset, peak, margin, scale)
    if recovery is not None:
        last = max(peak, recovery - 1)
        peak = onset + int(np.argmax(value[onset : last + 1]))
    after = (recovery if recovery is not None else last + 1) + np.arange(50)
    after = after[after < len(value)]
    effect = float(np.median(value[after] - [expected(int(i)) for i in after])) if len(after) >= 5 else float("nan")
    until = min(len(value), last + 300)
    third = peak + 2 * (until - peak) // 3
    settled = float(np.median(value[third:until] - expected.over(third, until)))
    half = half_life(value, expected, peak, recovery, excess, scale) if recovery is not None else None
    return Episode(
        onset, peak, last, excess, excess / scale, top,
        expected(onset), recovery, half, effect, settled, float(np.median(value[third:until])),
    )  # fmt: skip


def _onset(z: Floats) -> int:
    """Start of the climb of a cumulative sum with drift that leads to its first decisive height."""
    clipped = np.clip(z, -WINSOR, 2 * WINSOR) - DRIFT
    total = np.cumsum(clipped)
    floor = np.minimum.accumulate(np.concatenate([[0.0], total]))[:-1]
    height = total - floor
    decisive = np.flatnonzero(height >= min(12.0, float(height.max())))
    stop = int(decisive[0]) if len(decisive) else len(z) - 1
    before = np.concatenate([[0.0], total])[: stop + 1]
    return int(len(before) - 1 - np.argmin(before[::-1]))


def _rises(value: Floats, onset: int, last: int, scale: float) -> bool:
    """Whether the curve truly goes up: a descent that slows down also stays above the level expected from before."""
    before = float(np.median(value[max(0, onset - 16) : onset])) if onset else float(value[0])
    smooth = running_median(value[onset : last + 1], 3, centre=True)
    return float(smooth.max()) > before + 1.5 * scale
