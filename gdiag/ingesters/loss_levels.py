"""What the loss says of a step that falls back to the start: is it back at its first level, or does it go on?"""

from __future__ import annotations

from typing import Final, Literal

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Verdict = Literal["another", "goes on", "same", "counted", "unsaid"]
"""What begins there: another run, the same one by its loss, by its counters or written twice; or nothing tells."""

ROWS: Final = 8
"""Rows that a run has before another one can begin, …"""
NEW: Final = 3
"""… and that the other one has at least."""
_FIRST: Final = 5
_LAST: Final = 20
"""Rows whose median is the first and the last level of the loss."""
_SIGMAS: Final = 4.0
"""How far the levels of a run must lie apart for the loss to tell anything, in standard deviations of their difference."""
_BACK: Final = 0.35
"""Share of the way from the first to the last level within which a loss is back at the first one."""
_APART: Final = 0.5
"""Share of it that lies between the rows before the place and a loss that is back at its first level."""
_WALKS: Final = 2.0
"""Ways of an aimless walk that a loss has to have fallen to have learnt."""
_STAYS: Final = 0.2
"""Share of it that a loss which goes on may be off the last one."""
_HUGE: Final = 1e150
_SAME: Final = 0.8
"""Share of common steps with the same loss from which two stretches are one written twice."""


def verdict(step: Ints, loss: Floats, new_step: Ints, new_loss: Floats) -> Verdict:
    """What the loss says: it is back at its first level, goes on, is the same once more, or does not tell."""
    length = stretch(new_step)
    new_step, new_loss = new_step[:length], new_loss[:length]
    if np.isnan(loss).all():
        return "unsaid"
    loss, new_loss = _bounded(loss), _bounded(new_loss)
    common, one, other = np.intersect1d(step, new_step, return_indices=True)
    a, b = loss[one], new_loss[other]
    equal = (a == b) | (np.isnan(a) & np.isnan(b))
    both = np.isfinite(a) & np.isfinite(b)
    equal[both] |= np.abs(a[both] - b[both]) <= 1e-4 * np.maximum(np.abs(a[both]), 1e-12)
    if len(common) >= NEW and equal.mean() >= _SAME:
        return "same"
    finite = loss[np.isfinite(loss)]
    now = float(np.median(new_loss[: min(_FIRST, len(new_loss))]))
    if len(finite) < ROWS or not np.isfinite(now):
        return "unsaid"
    # A run that ended in NaN is taken up at the level it had before.
    first, last = finite[: min(_FIRST, len(finite) // 3)], finite[-min(_LAST, len(finite) // 2) :]
    start, end = float(np.median(first)), float(np.median(last))
    noise = 1.4826 * float(np.median(np.abs(np.diff(finite) - np.median(np.diff(finite))))) / np.sqrt(2)
    error = 1.25 * noise * np.sqrt(1 / len(first) + 1 / len(last))
    least = max(_SIGMAS * error, 0.02 * abs(start))
    way, learnt, again = start - end, start - _lowest(finite), now - _lowest(new_loss[np.isfinite(new_loss)])
    if abs(way) <= least:
        # Diverged to where it began, or nothing learnt: a model that learns once more is another one.
        fresh_again = again > _BACK * learnt and start - now <= _BACK * learnt
        return "another" if learnt > max(least, _WALKS * _walk(finite, noise)) and fresh_again else "unsaid"
    if way < 0 and learnt > least and start - now > _BACK * learnt:
        return "unsaid"  # it diverged and is back at what it had learnt before
    gone = (start - now) / way  # 0 at the first level, 1 at the last one; below 0 farther from the last than the first
    if way < 0 and gone < -_BACK:
        return "unsaid"
    # A loss that wanders comes anywhere by itself; a fresh one begins apart from the rows before it.
    jump = abs(now - float(np.median(finite[-_FIRST:])))
    jumped = jump > _SIGMAS * _walk(finite, noise, 1)
    if gone <= _BACK:
        return "another" if jumped and jump > _APART * abs(way) else "unsaid"
    if abs(now - end) <= max(_STAYS * abs(way), _SIGMAS * error):
        return "goes on"
    # Neither level: a run of another size or on other data, if the loss falls again as it did from the first one on.
    return "another" if jumped and way > 0 and again > max(_BACK * way, _SIGMAS * error) else "unsaid"


def _bounded(loss: Floats) -> Floats:
    """Losses with infinities for what is too large for sums and squares of it to be numbers."""
    return np.where(np.abs(loss) >= _HUGE, np.copysign(np.inf, loss), loss)


def stretch(step: Ints) -> int:
    """Rows before the step falls back again."""
    back = np.flatnonzero(np.diff(step) < 0)
    return int(back[0]) + 1 if len(back) else len(step)


def _walk(finite: Floats, noise: float, steps: int | None = None) -> float:
    """How far a loss that wanders without a trend gets, by its changes from some rows to the next ones.

    Args:
        finite: the loss.
        noise: standard deviation of single rows.
        steps: so many times from some rows to the next ones; None for all there are.
    """
    blocks = np.median(finite[len(finite) % _FIRST :].reshape(-1, _FIRST), axis=1)
    moves = np.diff(blocks)
    spread = 1.4826 * float(np.median(np.abs(moves - np.median(moves)))) if len(moves) else 0.0
    own = 2 * np.pi / 2 * noise**2 / _FIRST
    return float(np.sqrt(max(0.0, spread**2 - own) * (steps or len(moves))))


def _lowest(finite: Floats) -> float:
    """The lowest median of some rows in a row."""
    if len(finite) < _LAST:
        return float(np.median(finite))
    return float(np.median(finite[len(finite) % _LAST :].reshape(-1, _LAST), axis=1).min())
