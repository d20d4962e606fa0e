"""What happened to the loss: spikes that come back, levels that stay up, divergences; each event once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gdiag.measures.baseline import Floats
from gdiag.measures.changes import slow_rise
from gdiag.measures.curves import Curve, Path
from gdiag.measures.episodes import SCALES, Episode, Scan, scan
from gdiag.measures.recovery import regained_row
from gdiag.measures.rises import step_up
from gdiag.measures.runaway import Runaway, runaway
from gdiag.measures.segments import interval
from gdiag.measures.short_log import short_episodes
from gdiag.measures.short_spikes import Stretch, short_spikes

Kind = Literal["spike", "step_up", "divergence"]


STANDS = 1.5
"""Level after an event, in that before it, from which no loss is back."""


@dataclass(frozen=True, slots=True)
class LossEvent:
    """One event in the loss; rows index the path's loss curve."""

    kind: Kind
    path: Path
    onset: int
    peak: int
    last: int
    excess: float
    """Peak above the level expected there, nat."""
    z: float
    level: float
    """Level before, nat."""
    level_after: float
    noise: float
    recovery: int | None
    half_life: tuple[float, float] | None
    """Logged rows, from and to."""
    after_effect: float
    gain: float
    """What the run had gained before, nat: the measure of how much an excess matters."""
    lone: bool = False
    """A single row."""
    slow: bool = False
    """A rise without a spike."""
    unfinished: bool = False
    """The log ends before it shows whether the loss comes back."""

    @property
    def regained(self) -> int | None:
        """First row at which a loss that is not back where it was due is at least back at its level of before."""
        return regained_row(self.curve.value, self.level, self.peak, self.noise) if self.recovery is None else None

    @property
    def curve(self) -> Curve:
        """The loss on the event's path."""
        return self.path.curve("loss")

    def step(self, row: int) -> int:
        """The step of a row."""
        return int(self.curve.step[row])

    @property
    def onset_step(self) -> int:
        """First step of the event."""
        return self.step(self.onset)

    @property
    def last_step(self) -> int:
        """Last step of the event."""
        return self.step(self.last)

    @property
    def rows(self) -> int:
        """Logged rows from onset to end."""
        return self.last - self.onset + 1


@dataclass(frozen=True, slots=True)
class LossView:
    """The loss along one path: its scan and its events."""

    path: Path
    scan: Scan
    events: tuple[LossEvent, ...]
    hard_rows: NDArray[np.int64]
    """Isolated outliers that are no event: batches that are hard to predict."""
    every: int
    """Steps between two logged losses."""


def loss_view(path: Path) -> LossView:
    """Scan the loss of `path` and sort what was found into events."""
    curve = path.curve("loss")
    value = curve.value
    found = scan(value)
    start = float(np.median(value[: max(3, min(10, len(value) // 50))])) if len(value) else 0.0
    events = [_event(path, value, found, episode, start) for episode in found.episodes or short_episodes(value)]
    events = beyond_skew(value, events)
    events += [_short_event(path, value, found, stretch, start) for stretch in short_spikes(path, found, start)]
    events.sort(key=lambda event: event.onset)
    events = _without_consequences(events)
    relative = len(value) > 0 and _relative(value, start)
    if relative:
        events = [event for event in events if event.kind == "spike"]
    else:
        events = _with_small_step(path, value, found, events, start)
    rise = None if relative else _slow_event(path, value, found, events, start)
    if rise is not None:
        events = [event for event in events if event.onset < rise.onset] + [rise]
    away = None if relative or any(event.kind == "divergence" for event in events) else runaway(value)
    if away is not None:
        before = [event for event in events if event.last < away.onset]
        events = [*before, _away_event(path, value, away, start)]
    events = [event for event in events if event.onset_step >= path.judged_from]
    inside = np.zeros(len(value), dtype=bool)
    for event in events:
        inside[event.onset : event.last + 1 if event.kind == "spike" else len(value)] = True
    hard = found.outliers[~inside[found.outliers]] if len(value) else found.outliers
    hard = hard[curve.step[hard] >= path.judged_from]
    return LossView(path, found, tuple(events), hard, interval(curve.step))


SKEWED_Z, SKEWED_STRENGTH = 15.0, 5.0
"""Spikes lower than this, in standard deviations, must reach this windowed sum in the logarithm: below the scan's own threshold,
which of 45 spikes of trained and made runs 43 passed and of three of healthy classifiers one."""


SKEWED_ROWS = 25
"""Rows that a skewed noise does not raise all of."""


def beyond_skew(value: Floats, events: list[LossEvent]) -> list[LossEvent]:
    """The events without modest spikes that do not stand out of the logarithm of the loss.

    The loss of a classifier of few samples is skewed: it spreads as its level does, and upwards. Its logarithm spreads alike on
    both sides.
    """
    doubtful = [e for e in events if e.kind == "spike" and 0 < e.last - e.onset < SKEWED_ROWS and e.z < SKEWED_Z]
    if not doubtful or value.min() <= 0:
        return events
    strength = scan(np.log(value)).strength
    if not (strength > 0).any():
        return events  # too few rows to tell
    reach = SCALES[0]
    dropped = [e for e in doubtful if strength[max(0, e.onset - reach) : e.last + reach].max() < SKEWED_STRENGTH]
    return [e for e in events if e not in dropped]


def _relative(value: Floats, start: float) -> bool:
    """Whether the loss begins about zero and goes on either side of it, as the surrogate of a policy gradient does.

    Its level follows a moving reference: only what comes back is an event.
    """
    spread = float(np.subtract(*np.quantile(value, [0.95, 0.05])))
    return abs(start) <= 0.25 * spread and float(np.mean(value < 0)) >= 0.1


def _event(path: Path, value: Floats, found: Scan, episode: Episode, start: float) -> LossEvent:
    rows = len(value)
    gain = max(0.0, start - episode.level)
    sigma = episode.excess / episode.z
    after = episode.settled_level
    kind: Kind = "spike"
    unfinished = False
    # Noise that a wild stretch has widened lets a loss pass for back that stands at a multiple of its level.
    back = episode.recovered and not (episode.level > 0 and after > STANDS * episode.level)
    if not back:
        rise = episode.settled
        left = rows - episode.onset
        big = rise > max(0.25 * gain, 10 * sigma)
        unfinished = (left < 20 and not (big and left >= 10)) or _coming_down(value, episode)
        if not unfinished and rise > 2 * sigma:
            kind = "divergence" if big else "step_up"
        elif not unfinished and rows - episode.last < 10:
            unfinished = True
    return LossEvent(
        kind, path, episode.onset, episode.peak, episode.last, episode.excess, episode.z, episode.level, after, found.noise,
        episode.recovery if back else None, episode.half_life, episode.settled if kind != "spike" else episode.after_effect, gain,
        unfinished=unfinished,
    )  # fmt: skip


def _coming_down(value: Floats, episode: Episode) -> bool:
    """Whether the log ends while most of the excess is gone and the rest still falls."""
    rest = value[episode.peak :]
    third = len(rest) // 3
    raised = episode.last - episode.onset
    if (
        third < 4
        or raised > 0.25 * len(value)
        or len(value) - episode.last > raised
        or episode.settled > 0.35 * episode.excess
    ):
        return False
    sigma = episode.excess / episode.z
    return float(np.median(rest[third : 2 * third]) - np.median(rest[-third:])) > 0.5 * sigma


def _away_event(path: Path, value: Floats, away: Runaway, start: float) -> LossEvent:
    noise = max(away.noise, 1e-300)
    peak = away.onset + int(np.argmax(value[away.onset :]))
    excess = float(value[peak]) - away.level
    return LossEvent(
        "divergence", path, away.onset, peak, len(value) - 1, excess, excess / noise, away.level, away.end, away.noise,
        None, None, away.end - away.level, max(0.0, start - away.level),
    )  # fmt: skip


def _short_event(path: Path, value: Floats, found: Scan, stretch: Stretch, start: float) -> LossEvent:
    first, last = stretch
    level = float(found.base.level[first])
    peak = first + int(np.argmax(value[first : last + 1]))
    after = value[last + 1 : last + 51]
    effect = float(np.median(after)) - level if len(after) >= 5 else float("nan")
    back = last + 1 if last + 1 < len(value) else None
    return LossEvent(
        "spike", path, first, peak, last, float(value[peak]) - level, float(found.z[peak]), level,
        level + effect, found.noise, back, (0.0, float(last - first + 1)), effect, max(0.0, start - level),
        lone=first == last, unfinished=back is None,
    )  # fmt: skip


def _without_consequences(events: list[LossEvent]) -> list[LossEvent]:
    """Drop what follows inside a divergence, and lone rows inside another event."""
    kept: list[LossEvent] = []
    for event in events:
        if kept and kept[-1].kind == "divergence":
            break
        if kept and event.onset <= kept[-1].last:
            continue
        kept.append(event)
    return kept


def _with_small_step(
    path: Path, value: Floats, found: Scan, events: list[LossEvent], start: float
) -> list[LossEvent]:  # fmt: skip
    """The events with a small lasting step, where the scan found no level that stays up."""
    if any(event.kind != "spike" for event in events):
        return events
    kept = np.ones(len(value), dtype=bool)
    for event in events:
        kept[event.onset : event.last + 1] = False
    rows = np.flatnonzero(kept)
    step = step_up(value[rows])
    if step is None:
        return events
    onset, noise, gain = int(rows[step.onset]), max(found.noise, 1e-300), max(0.0, start - step.level)
    after = value[rows[step.onset : step.onset + step.window]]
    peak = onset + int(np.argmax(value[onset : onset + step.window]))
    kind: Kind = "divergence" if step.height > max(0.25 * gain, 10 * noise) else "step_up"
    raised = LossEvent(
        kind, path, onset, peak, len(value) - 1, step.height, step.height / step.error, step.level, float(np.median(after)),
        found.noise, None, None, step.height, gain,
    )  # fmt: skip
    others = [event for event in events if not onset - SCALES[0] <= event.onset <= onset + SCALES[-1]]
    return sorted([*others, raised], key=lambda event: event.onset)


def _slow_event(
    path: Path, value: Floats, found: Scan, events: list[LossEvent], start: float
) -> LossEvent | None:  # fmt: skip
    sudden = next((event for event in events if event.kind == "divergence"), None)
    if sudden is not None:
        value = value[: sudden.onset]
    if len(value) < 60:
        return None
    masked = np.zeros(len(value), dtype=bool)
    for event in events:
        if event.kind == "spike":
            masked[event.onset : event.last + 1] = True
    rise = slow_rise(value, masked)
    if rise is None:
        return None
    raised = next((event for event in events if event.kind == "step_up"), None)
    if raised is not None and raised.after_effect > 0.5 * rise.height:
        return None
    last = len(path.curve("loss")) - 1
    peak = rise.onset + int(np.argmax(value[rise.onset :]))
    noise = max(found.noise, 1e-300)
    return LossEvent(
        "divergence", path, rise.onset, peak, last, rise.height, rise.height / noise, rise.best, rise.end, found.noise,
        None, None, rise.height, max(0.0, start - rise.best), slow=True,
    )  # fmt: skip
