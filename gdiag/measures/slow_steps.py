"""Slow steps: single steps far above their neighbours, and whether they come in a rhythm (diagnosis.md 2.4).

The rhythm is a float period: a shard that ends every 190.03 steps is not found by whole numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gdiag.measures import dense_pauses
from gdiag.measures.baseline import mad_sigma
from gdiag.measures.chances import log10_tail
from gdiag.measures.curves import Floats
from gdiag.measures.dense_pauses import Dense
from gdiag.measures.levels import centred_median
from gdiag.measures.segments import Ints
from gdiag.measures.step_time import Bools, StepTimes

LASTING = 0.3
"""Share of the log over which a rhythm lasts that is not seen in all of it, unless it is there from the first period on."""


@dataclass(frozen=True, slots=True)
class SlowSteps:
    """Steps far above their neighbours; indices into the StepTimes they were found in."""

    at: Ints
    usual: Floats
    """Usual time of every step: a running median [s], (n,)."""
    noise: float
    """Relative noise (robust sigma of the logarithm)."""
    threshold: float
    """Ratio to the usual time from which a step counts as slow."""
    dense: Dense | None = None
    """Rows with a pause that are too many for a running median."""

    def ratio(self, times: StepTimes) -> Floats:
        """Time over usual time of every slow step."""
        return np.asarray(times.seconds[self.at] / self.usual[self.at])


@dataclass(frozen=True, slots=True)
class Rhythm:
    """Slow steps at a steady distance."""

    period: float
    """Steps between slow steps."""
    offset: float
    """Step of the first one."""
    hits: Ints
    """Indices into StepTimes."""
    coverage: float
    """Share of the ticks inside the logged stretch at which a slow step was seen."""
    log10_chance: float
    """log10 of the probability of as many hits by chance, corrected for the periods tried."""


def slow_steps(times: StepTimes, *, ratio: float = 1.25, z: float = 6.0) -> SlowSteps:
    """Judged steps that take at least `ratio` times the running median and stand `z` sigmas above it.

    Sigma is the wider of the robust one and the one of the upper half, so that a noisy machine's skew is not taken
    for slow steps.
    """
    y = np.log(times.seconds)
    dense = dense_pauses.find(y, times.judged, float(np.log(ratio)))
    if dense is not None:
        y = y - dense.excess
    middle = centred_median(y, 201)
    rest = y - middle
    judged = rest[times.judged]
    sigma = mad_sigma(judged)
    upper = judged[judged > 0]
    sigma_up = 1.4826 * float(np.median(upper)) if len(upper) else sigma
    threshold = max(np.log(ratio), z * max(sigma, sigma_up))
    at = np.flatnonzero((rest > threshold) & times.judged)
    if dense is not None:
        at = np.union1d(at, dense.rows)
    return SlowSteps(at, np.exp(middle), sigma, float(np.exp(threshold)), dense)


def rhythms(times: StepTimes, slow: SlowSteps, *, most: int = 3) -> list[Rhythm]:
    """Periods among slow steps, surest first; each slow step belongs to one period at most."""
    found = [] if slow.dense is None else [_dense_rhythm(times.step, slow.dense)]
    left = np.setdiff1d(slow.at, found[0].hits) if found else slow.at
    while len(left) >= 3 and len(found) < most:
        tries = [_rhythm(times.step, part) for part in _alike(times, slow, left)]
        best = min((t for t in tries if t is not None), key=lambda t: t.log10_chance, default=None)
        if best is None:
            break
        found.append(best)
        left = np.setdiff1d(left, best.hits)
    return found


def _dense_rhythm(step: Ints, dense: Dense) -> Rhythm:
    interval = float(np.median(np.diff(step)))
    first = float(step[dense.rows[0]])
    return Rhythm(interval / dense.share, first, dense.rows, dense.evenness, dense.log10_chance)


def _alike(times: StepTimes, slow: SlowSteps, at: Ints) -> list[Ints]:
    """Slow steps that may share a cause: all of them, and those at least half as slow as the slowest tenth."""
    excess = times.seconds[at] - slow.usual[at]
    strong = at[excess >= 0.5 * np.quantile(excess, 0.9)]
    return [at, strong] if len(strong) < len(at) else [at]


def _rhythm(step: Ints, at: Ints) -> Rhythm | None:
    if len(at) < 3:
        return None
    where = step[at].astype(float)
    interval = float(np.median(np.diff(step)))
    gaps = np.concatenate([where[lag:] - where[:-lag] for lag in (1, 2, 3) if len(where) > lag])
    gaps = gaps[gaps >= 2 * interval]
    candidates, counts = np.unique(np.round(gaps / interval), return_counts=True)
    tried = candidates[np.argsort(-counts, kind="stable")[:40]] * interval
    # A pause may last into the next row; only where such rows are too many by chance, each tick is one row.
    for exact in (False, True):
        fits = [
            _fit(step, at, float(period), interval / 2 if exact else max(interval, 0.01 * float(period)), len(tried))
            for period in tried
        ]
        best = min((fit for fit in fits if fit is not None), key=lambda fit: fit.log10_chance, default=None)
        if best is not None:
            return best
    return None


def _fit(step: Ints, at: Ints, period: float, reach: float, tried: int) -> Rhythm | None:
    """The surest rhythm near `period` whose slow steps lie within `reach` of its ticks."""
    where, first = step[at].astype(float), float(step[0])
    interval = float(np.median(np.diff(step)))
    best: Rhythm | None = None
    for anchor in where[np.unique(np.linspace(0, len(where) - 1, 6).astype(int))]:
        p, offset = period, float(anchor)
        hit = np.zeros(len(where), dtype=bool)
        for _ in range(4):
            k = np.round((where - offset) / p)
            hit = np.abs(where - offset - k * p) <= reach
            if len(np.unique(k[hit])) < 3:
                break
            p, offset = (float(v) for v in np.polyfit(k[hit], where[hit], 1))
            if p < 2 * interval:
                break
        # One slow step per tick counts: a tick with a burst around it is still one hit.
        ticks = np.unique(np.round((where[hit] - offset) / max(p, 1e-9)))
        if len(ticks) < 3 or p < 2 * interval or 2 * len(ticks) < len(where) * min(0.5, interval / p * 20):
            continue
        coverage, chance = _sureness(step, at, ticks, p, at[hit], 2 * reach / interval + 1)
        chance += np.log10(12 * tried)
        # Three slow steps are a rhythm only when none is missing.
        if coverage < (0.5 if len(ticks) >= 4 else 0.99) or chance > -4:
            continue
        if best is None or chance < best.log10_chance:
            best = Rhythm(p, offset - p * np.floor((offset - first) / p), at[hit], coverage, float(chance))
    return best


def _sureness(step: Ints, at: Ints, ticks: Floats, period: float, hits: Ints, width: float) -> tuple[float, float]:
    """Share of the ticks that are hit, and log10 of the chance of it, over the log or from the first hit to the last.

    width: rows around a tick that count as a hit. In a log of every so many steps, a period that is no whole multiple of
    the interval is in step with it for a while only.
    """
    whole = max(len(ticks), int((step[-1] - step[0]) // period))
    if 2 * len(ticks) >= whole:
        return len(ticks) / whole, log10_tail(whole, len(ticks), min(0.9, width * len(at) / len(step)))
    inside = int(ticks[-1] - ticks[0]) + 1
    rows = int(hits[-1] - hits[0]) + 1
    slow = int(((at >= hits[0]) & (at <= hits[-1])).sum())
    early = step[hits[0]] - step[0] <= 2.5 * period
    if rows < LASTING * len(step) and not early:
        return 0.0, 0.0
    chosen = 2 * np.log10(len(at))
    return len(ticks) / inside, log10_tail(inside, len(ticks), min(0.9, width * slow / rows)) + chosen


def matched(period: float, known: dict[str, float], log_interval: float = 1.0) -> tuple[str, float] | None:
    """The known interval of which `period` is a whole multiple, or that looks like it in such a log; None where there is none.

    Whole within 1 % and a tenth of the interval. Rows that stand for `log_interval` steps hold every pause of a shorter interval, and one more every `period` steps.
    """
    for name, interval in known.items():
        if interval > 1:
            times = period / interval
            # From ten times on, a hundredth of the period is a tenth of the interval and more: soon every period would match.
            if np.isfinite(times) and round(times) >= 1 and abs(times - round(times)) <= min(0.1, 0.01 * round(times)):
                return name, interval
            # Share of rows with one more: next to 0 every whole part of the log's interval is near.
            share = log_interval / period
            if interval < log_interval and abs(log_interval / interval % 1 - share) <= min(0.01, 0.1 * share):
                return name, interval
    return None


def onset(at: Ints, rows: int) -> int:
    """Index into `at` from which slow steps come more often than before; 0 when the rate does not change.

    Largest likelihood ratio of two Poisson rates against one, with a penalty for having chosen the place.
    """
    n = len(at)
    if n < 6:
        return 0
    whole = n * np.log(n / rows)
    best, place = max(np.log(n) + 3.0, n * np.log(n / max(1, rows - at[0])) - whole), 0
    for i in range(1, n - 3):
        before, after = at[i], rows - at[i]
        if before <= 0 or after <= 0:
            continue
        gain = (i * np.log(i / before)) + (n - i) * np.log((n - i) / after) - whole
        if gain > best and (n - i) / after > 2 * i / before:
            best, place = gain, i
    return place


def bursts(at: Ints, gap: int = 3) -> list[Ints]:
    """Slow steps in runs: steps no more than `gap` rows apart belong together."""
    if not len(at):
        return []
    return list(np.split(at, np.flatnonzero(np.diff(at) > gap) + 1))


def near(step: Ints, marks: Sequence[float], reach: float) -> Bools:
    """Which steps lie within `reach` after (or one interval before) one of the marks."""
    if not len(marks):
        return np.zeros(len(step), dtype=bool)
    sorted_marks = np.sort(np.asarray(marks, dtype=float))
    i = np.searchsorted(sorted_marks, step, side="right") - 1
    since = np.where(i >= 0, step - sorted_marks[np.maximum(i, 0)], np.inf)
    until = np.where(i + 1 < len(sorted_marks), sorted_marks[np.minimum(i + 1, len(sorted_marks) - 1)] - step, np.inf)
    return np.asarray((since <= reach) | (until <= 1))
