"""Values logged as NaN or infinite: where they begin, on which rank, what came before, and whether the run went on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from gdiag.measures.curves import Path, Points
from gdiag.measures.impossible import stands_for_nothing
from gdiag.measures.segments import Ints, interval

COLUMNS = ("loss", "grad_norm", "grad_norm_clipped", "param_norm", "update_norm")
DEAD_ROWS = 3
"""So many non-finite losses in a row, or up to the end, and the run is dead."""


@dataclass(frozen=True, slots=True)
class NonFinite:
    """One stretch of non-finite values on one path."""

    path: Path
    onset: int
    """Step of the first non-finite value in any column."""
    last: int
    """Step of the last."""
    place: Points
    """The one point at the onset."""
    columns: tuple[tuple[str, int], ...]
    """Columns with their first non-finite step, in the order of appearance."""
    rows: int
    """Non-finite losses; 0 when only other columns are."""
    dead: bool
    """Losses stay non-finite for three rows or to the end of the log."""
    skipped: bool
    """Only the gradient is non-finite and the step was skipped: ordinary fp16 back-off."""
    rank: int | None
    """The rank whose loss or gradient is non-finite first, alone among several."""
    infinite: bool
    """The first value is ±inf rather than NaN."""

    @property
    def gradient_first(self) -> bool:
        """Whether the gradient norm is non-finite at an earlier step than the loss, or without it."""
        first = dict(self.columns)
        if "grad_norm" not in first:
            return False
        return "loss" not in first or first["grad_norm"] < first["loss"]


def nonfinite(path: Path, steps: pl.DataFrame) -> tuple[NonFinite, ...]:
    """The stretches of non-finite values along `path`; `steps` holds the rows of all ranks.

    A log that writes NaN where it has no value, in turn with values from its first rows to its last, has none.
    """
    bad = {name: path.curve(name).nonfinite for name in COLUMNS}
    bad = {name: points for name, points in bad.items() if len(points) and not stands_for_nothing(path.curve(name))}
    if not bad:
        return ()
    rows = _logged(path)
    every = interval(rows)
    union = np.unique(np.concatenate([points.step for points in bad.values()]))
    union = union[union >= path.judged_from]
    if not len(union):
        return ()
    where = np.searchsorted(rows, union)
    cut = np.flatnonzero((np.diff(where) > DEAD_ROWS) & (np.diff(union) > DEAD_ROWS * every))
    starts = np.concatenate([[0], cut + 1])
    ends = np.concatenate([cut, [len(union) - 1]])
    return tuple(
        _stretch(path, steps, bad, int(union[a]), int(union[b]), rows) for a, b in zip(starts, ends, strict=True)
    )


def _stretch(
    path: Path, steps: pl.DataFrame, bad: dict[str, Points], first: int, last: int, rows: Ints
) -> NonFinite:  # fmt: skip
    inside = {name: points.keep((points.step >= first) & (points.step <= last)) for name, points in bad.items()}
    inside = {name: points for name, points in inside.items() if len(points)}
    columns = tuple(sorted(((name, int(points.step[0])) for name, points in inside.items()), key=lambda c: c[1]))
    place = inside[columns[0][0]].keep(slice(0, 1))
    losses = len(inside["loss"]) if "loss" in inside else 0
    ends = not bool((path.curve("loss").step > last).any())
    dead = losses > 0 and (losses >= DEAD_ROWS or ends)
    if not losses and ends and len(inside[columns[0][0]]) >= DEAD_ROWS:
        dead = True
    skipped = not losses and not dead and _was_skipped(path, first, last, rows)
    return NonFinite(
        path, first, last, place, columns, losses, dead, skipped, _first_rank(steps, first), bool(np.isinf(place.value[0]))
    )  # fmt: skip


def _logged(path: Path) -> Ints:
    """Steps at which the loss is logged, finite or not; without losses all steps."""
    curve = path.curve("loss")
    if len(curve) or len(curve.nonfinite):
        return np.unique(np.concatenate([curve.step, curve.nonfinite.step]))
    return path.frame["step"].to_numpy()


def _was_skipped(path: Path, first: int, last: int, rows: Ints) -> bool:
    """Whether the log says so: a skip flag, a falling loss scale, or a single gradient with training going on."""
    flags = path.curve("skipped")
    if bool(((flags.step >= first - 1) & (flags.step <= last + 1) & (flags.value > 0)).any()):
        return True
    scale = path.curve("loss_scale")
    # At the first row of a log, the scale that the overflowing step itself used stands for the one before.
    before, after = scale.at(first - 1) or scale.at(first), scale.at(last + 2 * interval(rows))
    if before is not None and after is not None and after < before:
        return True
    return int(np.sum((rows >= first) & (rows <= last))) <= 2


def _first_rank(steps: pl.DataFrame, first: int) -> int | None:
    if "rank" not in steps.columns or steps["rank"].n_unique() < 3:
        return None
    tests = [~pl.col(name).is_finite() for name in COLUMNS if name in steps.columns]
    found = steps.filter((pl.col("step") == first) & pl.col("rank").is_not_null() & pl.any_horizontal(tests))
    ranks = found["rank"].unique().to_list()
    return int(ranks[0]) if len(ranks) == 1 else None
