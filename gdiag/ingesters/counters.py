"""What the columns beside the loss say where the step falls back to the start: do they go on, or begin again too?"""

from __future__ import annotations

from typing import Final, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

Floats = npt.NDArray[np.float64]
Said = Literal["on", "back", ""]

COLUMNS: Final = ("epoch", "tokens", "samples", "elapsed", "lr")
_NEAR: Final = 3
"""Rows below the place within which a column has to be filled."""
_BEGUN: Final = 0.1
"""Share of what a counter came to, up to which it is back at its beginning."""
_LARGEST_RATE: Final = 1e100
_TREND: Final = 20
"""Rows that tell how the rate changes."""
_FAR: Final = 10.0
"""Usual changes of the rate from row to row that its beginning and its end have to lie apart."""
_WARM: Final = 0.5
"""Share of the highest rate below which one is warmed up."""
_SAME: Final = 1e-3
"""Relative difference of two rates that are the same but for rounding."""


def say(old: pl.DataFrame, new: pl.DataFrame) -> Said:
    """What counts over the whole run says: epochs and tokens, and samples where they go on.

    A count of samples that begins again may be that of an epoch.

    Args:
        old: the rows of the run before the place, with `step` and those of COLUMNS that there are.
        new: the rows from the place on.
    """
    for name in ("epoch", "tokens", "samples"):
        said = _counter(old, new, name)
        if said == "on" or (said == "back" and name != "samples"):
            return said
    return "on" if _rate_goes_on(old, new) else ""


def process_began_again(old: pl.DataFrame, new: pl.DataFrame) -> bool:
    """Whether the clock of the process began again with the step."""
    return _counter(old, new, "elapsed") == "back"


def schedule_began_again(old: pl.DataFrame, new: pl.DataFrame, *, warmed: bool) -> bool:
    """Whether the rate, which changed, takes the same course from the start on, be it to another height.

    Args:
        old: as in `say`.
        new: as there.
        warmed: whether that has to be a course which rises first: one that only falls may begin again with every epoch.
    """
    a, b = _rates(old), _rates(new)
    if a is None or b is None:
        return False
    _, one, other = np.intersect1d(a[0], b[0], return_indices=True)
    first, again = a[1][one], b[1][other]
    if len(first) < _NEAR or (first <= 0).any() or (again <= 0).any():
        return False
    height = again / first
    moves = float(first.max() / first.min()) - 1
    if warmed and first[0] > _WARM * first.max():
        return False
    return moves > 100 * _SAME and float(height.max() / height.min()) - 1 < _SAME * 5


def _counter(old: pl.DataFrame, new: pl.DataFrame, name: str) -> Said:
    if name not in old.columns:
        return ""
    before, after = old[name].drop_nulls().drop_nans(), new[name].head(_NEAR).drop_nulls().drop_nans()
    if not before.len() or not after.len() or (name == "epoch" and bool((old[name] == old["step"]).all())):
        return ""
    first, last, now = float(before[0]), float(before[-1]), float(after[0])
    if last == first:
        return "on" if name == "epoch" and last < now <= last + 1 else ""
    if last < first:
        return ""
    return "on" if now >= last else "back" if now <= first + _BEGUN * (last - first) else ""


def _rates(rows: pl.DataFrame) -> tuple[npt.NDArray[np.int64], Floats] | None:
    if "lr" not in rows.columns:
        return None
    told = rows.select("step", "lr").filter(pl.col("lr").abs() < _LARGEST_RATE)
    return (told["step"].to_numpy(), told["lr"].to_numpy()) if told.height >= _NEAR else None


def _rate_goes_on(old: pl.DataFrame, new: pl.DataFrame) -> bool:
    """Whether the rate goes on as it changed last, far from where it began."""
    a, b = _rates(old), _rates(new)
    if a is None or b is None or len(a[1]) < _TREND:
        return False
    before, after = np.diff(a[1][-_TREND:]), np.diff(b[1][:_TREND])
    slope, later = float(np.median(before)), float(np.median(after)) if len(after) else 0.0
    if slope == 0 or later * slope <= 0 or not 1 / 3 < later / slope < 3:
        return False
    step, way = float(b[1][0] - a[1][-1]), float(a[1][0] - a[1][-1])
    return abs(step) <= 3 * abs(slope) and abs(way) > _FAR * abs(slope)
