"""Series of loss spikes: when several spikes are one story."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from gdiag.measures.loss_events import LossEvent, LossView
from gdiag.measures.onset import onset_context
from gdiag.measures.segments import Ints

MANY = 3
"""So many spikes are a series wherever they are."""
NEAR_STEPS = 1000
"""Two spikes within so many steps are a series too."""


@dataclass(frozen=True, slots=True)
class Series:
    """The spikes of one path that belong together."""

    events: tuple[LossEvent, ...]
    gap_trend: float
    """Rank correlation (Kendall) of the gaps with their order; -1: faster and faster."""
    excess_trend: float
    """Rank correlation of the peak excess with the order; 1: larger and larger."""
    lr_share: float | None
    """Median learning rate at the onsets over its peak."""
    same_samples: bool
    """At least two onsets lie at overlapping sample ids."""
    period: float | None
    """Steps from onset to onset, None where they have no equal distance."""


def _spikes(view: LossView) -> list[LossEvent]:
    return [event for event in view.events if event.kind == "spike" and not event.unfinished]


def _in_series(view: LossView) -> list[LossEvent]:
    spikes = _spikes(view)
    if len(spikes) >= MANY:
        return spikes
    if len(spikes) == 2 and spikes[1].onset_step - spikes[0].onset_step <= NEAR_STEPS and _alike(*spikes):
        return spikes
    return []


def _alike(first: LossEvent, second: LossEvent) -> bool:
    """Two spikes are a series only where one is not a dwarf beside the other."""
    return max(first.excess, second.excess) <= 5 * min(first.excess, second.excess)


def single_spikes(view: LossView) -> list[LossEvent]:
    """Spikes that are no part of a series."""
    series = {id(event) for event in _in_series(view)}
    return [event for event in view.events if event.kind == "spike" and id(event) not in series]


def spike_series(view: LossView) -> Series | None:
    """The spikes that repeat, None where there are fewer than two that belong together."""
    events = _in_series(view)
    if not events:
        return None
    onsets = np.array([event.onset_step for event in events])
    gaps = np.diff(onsets)
    shares: list[float] = []
    samples: list[tuple[int, int]] = []
    for event in events:
        found = onset_context(event.path, event.onset_step, event.step(event.peak), view.every)
        if found.lr_share_of_peak is not None:
            shares.append(found.lr_share_of_peak)
        if found.sample_start is not None:
            samples.append((found.sample_start, found.sample_end or found.sample_start + 1))
    samples.sort()
    same = any(a[1] > b[0] for a, b in pairwise(samples))
    return Series(
        tuple(events), _kendall(gaps.tolist()), _kendall([event.excess for event in events]),
        float(np.median(shares)) if shares else None, same, equal_distance(onsets, view.every),
    )  # fmt: skip


def equal_distance(steps: Ints, every: int, *, least: int = 4, share: float = 0.75) -> float | None:
    """The period of `steps` (increasing), None where they have none.

    Rows within three of one another are one event. A period is a distance that `share` of at least `least` events keep
    within one row, where as many events close together by chance would do so in fewer than one of a thousand cases: each
    distance beyond the first has a chance of three rows in a period.
    """
    events = steps[np.concatenate([[True], np.diff(steps) > 3 * every])]
    if len(events) < least:
        return None
    gaps = np.diff(events)
    period = float(np.median(gaps))
    kept = np.abs(gaps - period) <= every
    if period < 10 * every or float(np.mean(kept)) < share:
        return None
    return period if (3 * every / period) ** (int(kept.sum()) - 1) < 0.001 else None


def _kendall(value: list[float]) -> float:
    """Kendall's tau of values with their order, 0 for fewer than three."""
    if len(value) < 3:
        return 0.0
    held = np.asarray(value, dtype=np.float64)
    i, j = np.triu_indices(len(held), 1)
    return float(np.mean(np.sign(held[j] - held[i])))
