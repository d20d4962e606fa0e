"""Where telemetry lies on the step log's time axis: nvidia-smi prints local time without a zone.

Offsets of the world's zones are multiples of 15 minutes. Each is tried; the one under which telemetry covers the run
and shows load while steps were made (and none while there were none) is taken. Most logs share a clock, most zones are
whole hours away, few are half hours and three quarters: the rarer an offset, the clearer the evidence for it must be.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
import polars as pl

from gdiag.measures.curves import Floats

How = Literal["same clock", "inferred", "ambiguous", "apart", "load start"]
QUARTER: Final = 900.0
FURTHEST: Final = 14 * 4


@dataclass(frozen=True, slots=True)
class Alignment:
    """What to add to telemetry times to get the step log's times."""

    offset: float
    """Seconds; 0 when both clocks agree."""
    how: How
    overlap: float
    """Share of the run that telemetry covers under this offset."""

    @property
    def usable(self) -> bool:
        """Whether a moment of the telemetry can be named by a step."""
        return self.how != "apart" and self.overlap > 0

    def said(self) -> str:
        """The sentence for the report."""
        hours = self.offset / 3600
        if self.how == "inferred":
            return f"telemetry clock taken to be {hours:+g} h from the step log's, by matching load with steps"
        if self.how == "ambiguous":
            return f"telemetry clock taken to be {hours:+g} h from the step log's, other offsets fit as well: give --tz"
        if self.how == "load start":
            return "telemetry placed by the first sample under load: the step log has no dates"
        if self.how == "apart":
            return "telemetry and step log do not overlap in time under any time zone"
        return ""


def align(
    stamps: Floats, telemetry: pl.DataFrame, *, zone_known: bool, elapsed: Floats | None = None
) -> Alignment | None:
    """Offset between telemetry (columns time, busy: share of load per moment, in order) and step stamps [Unix s].

    None without times on either side. With a known zone only the offset 0 is allowed.
    """
    moments = telemetry["time"].to_numpy() if telemetry.height else np.empty(0)
    stamps = np.sort(stamps[np.isfinite(stamps)])
    if len(moments) < 2:
        return None
    load = telemetry["busy"].to_numpy()
    if len(stamps) < 2:
        if elapsed is None or not np.isfinite(elapsed).any() or not (load > 0.5).any():
            return None
        start = float(moments[np.argmax(load > 0.5)])
        return Alignment(float(np.nanmin(elapsed)) - start, "load start", 1.0)
    spans = _active(stamps)
    scores = {k: _score(moments + k * QUARTER, load, spans) for k in range(-FURTHEST, FURTHEST + 1)}
    if zone_known:
        overlap = _overlap(moments, spans)
        return Alignment(0.0, "same clock" if overlap > 0 else "apart", overlap)
    best = max(scores, key=lambda k: (round(scores[k] * _likely(k), 3), -abs(k)))
    if scores[best] <= 0:
        return Alignment(0.0, "apart", 0.0)
    rival = max(s for k, s in scores.items() if abs(k - best) > 1)
    overlap = _overlap(moments + best * QUARTER, spans)
    how: How = "same clock" if best == 0 else "inferred"
    if rival > 0.97 * scores[best]:
        best = 0 if scores[0] > 0.97 * scores[best] else best
        how = "same clock" if best == 0 else "ambiguous"
    return Alignment(best * QUARTER, how, overlap)


def _likely(quarters: int) -> float:
    """How much of its score an offset keeps: telemetry that begins a few seconds late must not move a clock."""
    if quarters == 0:
        return 1.0
    return 0.985 if quarters % 4 == 0 else 0.97 if quarters % 2 == 0 else 0.95


def _active(stamps: Floats) -> Floats:
    """Stretches in which steps follow each other, as rows of (start, end); stamps are times at the end of a step."""
    gaps = np.diff(stamps)
    usual = float(np.median(gaps))
    cuts = np.flatnonzero(gaps > max(20 * usual, 60.0))
    starts = np.append(stamps[0] - usual, stamps[cuts + 1] - usual)
    ends = np.append(stamps[cuts], stamps[-1])
    return np.column_stack([starts, ends])


def _score(moments: Floats, load: Floats, spans: Floats) -> float:
    """Covered share of the run, plus how much more load there is while steps are made than while there are none."""
    covered = _overlap(moments, spans)
    if covered == 0:
        return 0.0
    at = np.searchsorted(spans[:, 0], moments, side="right") - 1
    inside = (at >= 0) & (moments <= spans[np.maximum(at, 0), 1])
    within = float(load[inside].mean()) if inside.any() else 0.0
    outside = float(load[~inside].mean()) if (~inside).any() else 0.0
    return covered * (1.0 + max(-0.9, within - outside))


def _overlap(moments: Floats, spans: Floats) -> float:
    """Share of the active stretches between the first and the last moment."""
    low, high = moments[0], moments[-1]
    shared = np.clip(np.minimum(spans[:, 1], high) - np.maximum(spans[:, 0], low), 0.0, None).sum()
    whole = (spans[:, 1] - spans[:, 0]).sum()
    return float(shared / whole) if whole > 0 else 0.0


def step_at(moment: float, stamps: Floats, steps: np.ndarray[tuple[int], np.dtype[np.int64]]) -> int | None:
    """The step that was being made at `moment` (stamps are written at the end of a step); None outside the run."""
    if not len(stamps) or moment > stamps[-1] + 60:
        return None
    i = int(np.searchsorted(stamps, moment, side="left"))
    return int(steps[min(i, len(steps) - 1)])
