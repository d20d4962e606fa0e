"""Steps that a resume trained twice, held against one another.

A checkpoint that is whole, read by a loader that is where it was, gives each loss again: to the last digit where the machine
is deterministic. The first row shows weights and batch, for no update lies between; the rows after it show the updates too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from gdiag.measures.baseline import Floats, row_noise
from gdiag.measures.curves import Curve, Path
from gdiag.measures.parameters import last_digit

SAME: Final = 2e-5
"""Relative difference up to which two losses are the same, where more digits are written."""
RATE: Final = 0.01
"""Relative difference from which a learning rate is another one."""
CHANCE: Final = 0.02
"""Unit of the last digit over the noise above which two batches often have the same loss."""


@dataclass(frozen=True, slots=True)
class Replay:
    """Rows of one resume that were trained twice."""

    step: int
    last_step: int
    row: int
    """Of the loss on the trajectory."""
    rows: int
    same_start: bool
    """The first row has the loss of its first training."""
    worse: int
    """Later rows whose loss is higher than the first time, of those that differ."""
    differing: int
    """Later rows that differ."""
    excess: float
    """Median difference of the later rows, nat."""
    chance: float
    """Probability of later rows so much worse, were both trainings alike (Wilcoxon's signed ranks of those that differ)."""
    noise: float
    other_rate: bool
    """The learning rate, where logged, is not that of the first training."""


def replays(paths: Sequence[Path]) -> list[Replay]:
    """One entry for each stretch of two logged losses or more that a restart took back and trained again."""
    loss = paths[0].curve("loss")
    if len(loss) < 10:
        return []
    noise = row_noise(loss.value)
    unit = float(np.median(last_digit(loss.value[:, None])))
    found: list[Replay] = []
    for tail in paths:
        if tail.kind != "tail":
            continue
        first, again = _pairs(tail.curve("loss"), loss, tail.judged_from)
        if len(first) < 2:
            continue
        before, after = tail.curve("loss").value[first], loss.value[again]
        same = np.abs(after - before) <= SAME * np.abs(before)
        differs = ~same[1:]
        change = (after - before)[1:]
        found.append(
            Replay(
                int(loss.step[again[0]]), int(loss.step[again[-1]]), int(again[0]), len(again),
                bool(same[0]) and unit <= CHANCE * noise, int((change[differs] > 0).sum()),
                int(differs.sum()), float(np.median(change)), _by_chance(change[differs]), noise,
                _other_rate(tail, paths[0]),
            )
        )  # fmt: skip
    return found


def _by_chance(change: Floats) -> float:
    from scipy.stats import wilcoxon  # a third of a second to import, and few runs were replayed

    change = change[np.isfinite(change)]
    return float(wilcoxon(change, alternative="greater").pvalue) if len(change) else 1.0


def _other_rate(tail: Path, trajectory: Path) -> bool:
    before, after = tail.curve("lr"), trajectory.curve("lr")
    first, again = _pairs(before, after, tail.judged_from)
    change = np.abs(after.value[again] - before.value[first])
    return bool((change > RATE * np.abs(before.value[first])).any())


def _pairs(tail: Curve, loss: Curve, since: int) -> tuple[np.ndarray[tuple[int], np.dtype[np.int64]], ...]:
    """Rows of the same steps on both paths, from step `since` on."""
    both, first, again = np.intersect1d(tail.step, loss.step, return_indices=True)
    keep = both >= since
    return first[keep], again[keep]
