"""Time in collectives: the collective's own time, apart from the wait for a rank that arrives late.

All ranks leave a collective together. A rank that arrives late waits least in it and makes the others wait; a collective
that is slow itself is slow for the rank that waits least, too. So the least time over the ranks is the collective's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl

from gdiag.measures import slowdowns
from gdiag.measures.curves import Floats
from gdiag.measures.slowdowns import Slowdown, StepTimeView
from gdiag.measures.step_time import StepTimes, step_times

_OFTEN: Final = 8
"""Times that a collective of one size must be seen before its usual time is known."""
_KEY: Final = ("group", "collective", "size")


@dataclass(frozen=True)
class Waits:
    """Own times of a run's collectives, one element per step or per operation, and how they change."""

    view: StepTimeView
    """Own time as if it were the step time: seconds per step, or multiples of the operation's usual time."""
    usual: Floats
    """Seconds that 1.0 of `view` stands for, per element."""
    step: Floats
    """Step time of the same rows [s]; NaN where not logged, empty for operations."""
    ranks: int
    """Ranks that report; 0 where they were reduced to one figure or only one reports."""
    names: tuple[str, ...] = ()
    """Operation of each element; empty for steps."""
    hosts: tuple[tuple[str, ...], ...] = ()
    """Hosts of each element's ranks; empty where not known."""

    @property
    def times(self) -> StepTimes:
        """Places, times and own times of the elements."""
        return self.view.times

    def lost(self, slow: Slowdown) -> float:
        """Seconds that a slowdown cost: what it added to the collective, as far as it was added to the step as well."""
        rows = slow.rows if len(slow.rows) else np.arange(slow.start, slow.end + 1)
        added = (self.times.seconds[rows] - slow.before) * self.usual[rows]
        if len(self.step):
            there = self.step[self.times.judged]
            longer = self.step[rows] - (np.nanmedian(there) if np.isfinite(there).any() else np.nan)
            added = np.where(np.isfinite(longer), np.minimum(added, longer), added)
        return float(np.sum(np.maximum(added, 0.0))) * (self.view.interval if len(self.step) else 1.0)

    def spent(self, slow: Slowdown) -> float | None:
        """Seconds from the slowdown's first row to the end of the log; None where neither steps nor clocks tell."""
        rest = self.step[slow.start :]
        if len(rest) and np.isfinite(rest).all():
            return float(np.sum(rest)) * self.view.interval
        clock = self.times.time[slow.start :]
        clock = clock[np.isfinite(clock)]
        return float(clock[-1] - clock[0]) if len(clock) > 1 and clock[-1] > clock[0] else None


def step_waits(frame: pl.DataFrame, steps: pl.DataFrame, restarts: Sequence[int]) -> Waits | None:
    """Own times from `comm_time`: of the ranks' rows where at least two log it, else of the trajectory `frame`."""
    if "comm_time" not in frame.columns or not frame["comm_time"].count():
        return None
    own, ranks = pl.col("comm_time"), 0
    if "rank" in steps.columns:
        logged = steps.filter(pl.col("rank").is_not_null() & pl.col("comm_time").is_not_null())
        ranks = logged["rank"].n_unique()
        if ranks > 1:
            least = logged.group_by("step").agg(least=pl.col("comm_time").min())
            frame, own = frame.join(least, on="step", how="left", maintain_order="left"), pl.col("least")
    whole = frame["step_time"] if "step_time" in frame.columns else pl.Series([None] * frame.height, dtype=pl.Float64)
    kept = [c for c in ("step", "source", "line", "time", "tokens", "batch_size", "seq_len") if c in frame.columns]
    times = step_times(frame.select(*kept, step_time=own), restarts)
    if times is None or times.basis != "logged":
        return None
    whole = pl.DataFrame({"step": times.step}).join(
        frame.select("step", whole=whole).unique("step", keep="last"), on="step", how="left", maintain_order="left"
    )["whole"]
    seconds = whole.cast(pl.Float64).fill_null(float("nan")).to_numpy()
    return Waits(slowdowns.view(times), np.ones(len(times)), seconds, ranks if ranks > 1 else 0)


def operation_waits(operations: pl.DataFrame) -> Waits | None:
    """Own times of single operations against the usual time of their kind and size; None with too few of them."""
    if not operations.height:
        return None
    one = operations.group_by(*_KEY, "sequence", maintain_order=True).agg(
        pl.col("seconds").min(), pl.col("time").max(), pl.col("source", "line").first(), pl.col("host").unique().sort(),
        ranks=pl.col("rank").n_unique(),
    )  # fmt: skip
    one = one.with_columns(usual=pl.col("seconds").median().over(_KEY), often=pl.len().over(_KEY))
    one = one.filter((pl.col("often") >= _OFTEN) & (pl.col("usual") > 0)).sort(
        "time", nulls_last=True, maintain_order=True
    )
    times = step_times(
        one.select(pl.int_range(pl.len()).alias("step"), "source", "line", "time", step_time=pl.col("seconds") / pl.col("usual"))
    )  # fmt: skip
    if times is None:
        return None
    one = one[times.step]
    names = tuple(str(name) for name in one["collective"])
    hosts = tuple(tuple(str(h) for h in row if h is not None) for row in one["host"])
    ranks = int(one["ranks"].max() or 0)  # type: ignore[arg-type]
    return Waits(slowdowns.view(times), one["usual"].to_numpy(), np.empty(0), ranks if ranks > 1 else 0, names, hosts)
