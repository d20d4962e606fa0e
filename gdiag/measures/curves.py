"""Curves: one column of a run along one path, as dense arrays with the place of every value."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from gdiag.measures.segments import Ints

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Points:
    """Values of one column with the place of each; the four arrays have one length."""

    step: Ints
    value: Floats
    source: Ints
    """Index into Records.sources; -1 when not known."""
    line: Ints
    """1-based line; -1 when not known."""

    def __len__(self) -> int:
        return len(self.step)

    def row(self, i: int) -> dict[str, object]:
        """Place of point `i` as RunView.where takes it."""
        source, line = int(self.source[i]), int(self.line[i])
        return {
            "step": int(self.step[i]),
            "source": source if source >= 0 else None,
            "line": line if line >= 0 else None,
        }

    def keep(self, mask: NDArray[np.bool_] | slice) -> Points:
        """The points selected by `mask`."""
        return Points(self.step[mask], self.value[mask], self.source[mask], self.line[mask])


@dataclass(frozen=True, slots=True)
class Curve:
    """One column along one path: what was not logged is absent, what was logged as NaN or ±inf is kept apart."""

    name: str
    finite: Points
    nonfinite: Points

    @property
    def step(self) -> Ints:
        """Steps with a finite value, increasing."""
        return self.finite.step

    @property
    def value(self) -> Floats:
        """The finite values."""
        return self.finite.value

    def __len__(self) -> int:
        return len(self.finite)

    def until(self, step: int) -> Curve:
        """The curve before `step`."""
        return Curve(
            self.name, self.finite.keep(self.finite.step < step), self.nonfinite.keep(self.nonfinite.step < step)
        )

    def at(self, step: int) -> float | None:
        """The finite value logged at `step`, else at the last logged step before it, else None."""
        i = int(np.searchsorted(self.step, step, side="right")) - 1
        return float(self.value[i]) if i >= 0 else None


@dataclass(frozen=True)
class Path:
    """A way the run went: the trajectory, a tail that a restart took back, or another writer's rows."""

    kind: Literal["trajectory", "tail", "writer"]
    frame: pl.DataFrame
    """One row per step, increasing; `step`, `source`, `line` and the metric columns of `steps`."""
    judged_from: int
    """Events that begin before this step belong to another path: rows before it are context."""

    @cached_property
    def _curves(self) -> dict[str, Curve]:
        return {}

    def curve(self, name: str) -> Curve:
        """The column `name` along this path; empty when it was not logged."""
        if name not in self._curves:
            self._curves[name] = _curve(self.frame, name)
        return self._curves[name]

    def beside(self, name: str, curve: Curve) -> Path:
        """This path with `curve` as its column `name`, which was not logged but follows from what was."""
        path = Path(self.kind, self.frame, self.judged_from)
        path._curves.update(self._curves, **{name: curve})
        return path


def _curve(frame: pl.DataFrame, name: str) -> Curve:
    nothing = np.empty(0, dtype=np.int64)
    none = Points(nothing, np.empty(0), nothing, nothing)
    if name not in frame.columns:
        return Curve(name, none, none)
    rows = frame.select("step", "source", "line", name).filter(pl.col(name).is_not_null())
    value = rows[name].to_numpy()
    place = [rows[c].cast(pl.Int64).fill_null(-1).to_numpy() for c in ("source", "line")]
    points = Points(rows["step"].to_numpy(), value, *place)
    finite = np.isfinite(value)
    return Curve(name, points.keep(finite), points.keep(~finite))
