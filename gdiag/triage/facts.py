"""What triage may know about a run besides its findings: plain figures for causes, costs and actions."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from gdiag.model import DataWindow, Value


@dataclass(frozen=True, slots=True)
class RunFacts:
    """Figures of one run, filled by the pipeline from the run's measures."""

    run: str
    first_step: int | None = None
    last_step: int | None = None
    interval: float = 1.0
    """Median distance of logged steps [step]."""
    rows: NDArray[np.int64] | None = field(default=None, compare=False)
    """Logged steps, ascending; None where rows are taken to be `interval` apart."""
    gaps: tuple[tuple[int, int], ...] = ()
    """Stretches without a logged row: (last step before, first step after)."""
    step_seconds: float | None = None
    """Median step time [s]."""
    ranks: int | None = None
    """Data-parallel ranks, or GPUs seen; None when the logs do not say."""
    checkpoints: tuple[int, ...] = ()
    """Steps of known checkpoints, ascending."""
    columns: frozenset[str] = frozenset()
    """What was logged: steps.loss, layers.grad_norm, gpus.clock_sm, …"""
    config: dict[str, Value] = field(default_factory=dict)
    peak_lr: float | None = None
    steady_lr: bool = False
    """The logged rate is the same all along."""
    windows: dict[int, DataWindow] = field(default_factory=dict)
    """Samples consumed at the steps at which findings of the model begin, where sample ids are logged."""
    times: dict[int, float] = field(default_factory=dict)
    """Unix seconds of the last steps that findings name, by the run's own clock."""
    formats: frozenset[str] = frozenset()
    """Formats of the run's sources."""

    def apart(self, first: float, last: float) -> float:
        """Logged rows from one step to a later one: how close two events are, whatever the interval is there."""
        if self.rows is None or not len(self.rows):
            return (last - first) / self.interval
        start, end = np.searchsorted(self.rows, [first, last])
        return float(end - start)

    def unlogged(self, first: float, last: float) -> int:
        """Steps between two logged ones that lie in gaps of the log: nobody knows what they cost."""
        return sum(int(b - a - self.interval) for a, b in self.gaps if first <= a and b <= last)

    def logged(self, *columns: str) -> bool:
        """Whether every one of `columns` holds values."""
        return self.columns.issuperset(columns)

    def checkpoint_before(self, step: int) -> int | None:
        """The last known checkpoint strictly before `step`."""
        return max((c for c in self.checkpoints if c < step), default=None)
