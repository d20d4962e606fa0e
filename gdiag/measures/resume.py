"""Resumes: the loss before and after each place where training was taken up again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Literal

import numpy as np

from gdiag.measures.baseline import MEDIAN_ERROR, mad_sigma, row_noise
from gdiag.measures.curves import Curve, Floats, Path
from gdiag.measures.recovery import regained_row
from gdiag.measures.trajectory import Restart

Kind = Literal["clean", "transient", "level", "lower", "older_checkpoint", "fresh_model"]

FIRST_ROWS = 5
WIDTHS = (5, 10, 20, 40)
"""Rows after the restart whose median is held against the level before; the clearest decides."""
SIGMAS = 6.0
JOINT_SIGMAS = 2.5
"""The same where the gradient norm jumps with the loss: two columns agree, at a step that is known beforehand."""
SHAKEN_Z = 8.0
"""Deviation of the first gradient norms after a restart from which they jump, in robust standard deviations, …"""
SHAKEN_RATIO = 2.0
"""… and over those before."""
LEVEL_SHARE, GAIN_SHARE = 0.02, 0.01
"""Least difference that counts, over the level due and over what the run had gained: the unit of the loss does not matter."""
REFERENCE_ROWS = 50
NOISE_ROWS = 200
EARLY_ROWS = 30
"""Rows at the start in which a clock set back is no restart."""
PAUSE_SECONDS, PAUSE_STEPS, MOST_PAUSES = 30.0, 50.0, 3
"""Least length of a pause that may be a restart, in seconds and in usual steps; more of them are evaluations or checkpoints."""
YOUNGEST = 0.05
"""Share of the rows before a restart from which on an earlier place of the curve can be that of a checkpoint."""
MOMENT_STEPS, MOMENT_ROWS = 100.0, 3
"""Steps, and logged rows, in which half of what lost moments cost is made good; a model that was set back takes as long as
it once took."""
RELEARNT = 0.5
"""Share of the rows that the run once took from a level to the one before the restart: weights that make it good faster were
not those of that time."""
TAIL_ROWS = 400
"""Rows after a restart within which the loss must come back."""


@dataclass(frozen=True, slots=True)
class Resume:
    """One place where training was taken up again."""

    step: int
    """First logged step after it."""
    index: int
    """Its position in the loss curve."""
    rewound: int
    """Steps trained twice."""
    kind: Kind
    before: float
    """Loss due there [nat]."""
    after: float
    """Loss of the first rows after it, carried to the first [nat]."""
    late: float
    """Level once the loss has settled, or of the last rows at hand [nat]."""
    noise: float
    """Robust standard deviation of rows before [nat]."""
    limit: float
    """Least difference that counts [nat]."""
    recovery_step: int | None
    """First step back where the loss was due."""
    regained_step: int | None
    """First step back at the loss due at the restart, where it is not back where it was due to fall to meanwhile."""
    half_life: float | None
    """Steps in which half of the excess is gone."""
    grad_ratio: float | None
    """Median gradient norm of the first rows after over the rows before."""
    update_jump: float | None
    """Median update norm of the first rows after over the rows before."""
    start: float
    """Loss with which the run began [nat]."""
    first: float
    """Loss of the first row after it less the loss due: what the weights that were loaded cost before any update [nat]."""
    highest: float
    """The larger loss of the first two rows [nat]."""
    like_step: int | None = None
    """Step at which the run had this level before, where it was higher than the level due; None outside the curve."""

    @property
    def jump(self) -> float:
        """After minus before [nat]."""
        return self.after - self.before


def boundaries(restarts: Sequence[Restart], events: Sequence[int], elapsed: Curve) -> list[tuple[int, int]]:
    """(first step after, steps rewound) of every restart in the trajectory, restart event, or clock set back.

    events: steps of events of kind restart. Restarts from the very first step are other runs, not resumes.
    """
    found = {r.step: r.rewound for r in restarts if not r.from_start}
    # Clocks are also set back after the first few steps, to leave compilation out.
    back = np.flatnonzero(np.diff(elapsed.value[EARLY_ROWS:]) < 0) + EARLY_ROWS + 1
    return _joined(found, [*events, *(int(s) for s in elapsed.step[back])])


def with_pauses(places: Sequence[tuple[int, int]], time: Curve) -> list[tuple[int, int]]:
    """`places` and those of the few pauses as long as a restart takes: it may leave no other trace."""
    return _joined(dict(places), _rare_pauses(time))


def _joined(places: dict[int, int], steps: Sequence[int]) -> list[tuple[int, int]]:
    found = dict(places)
    for step in steps:
        if all(abs(step - known) > 2 for known in found) and step > 0:
            found[step] = 0
    return sorted(found.items())


def _rare_pauses(time: Curve) -> list[int]:
    """First steps after the few pauses as long as a restart takes; many are a habit."""
    steps, pause = np.diff(time.step), np.diff(time.value)
    if len(pause) < EARLY_ROWS:
        return []
    usual = float(np.median(pause / np.maximum(steps, 1)))
    long = np.flatnonzero((pause > PAUSE_SECONDS) & (pause > PAUSE_STEPS * usual * np.maximum(steps, 1)))
    long = long[long >= EARLY_ROWS]
    return [int(time.step[i + 1]) for i in long] if len(long) <= MOST_PAUSES else []


def resumes(paths: Sequence[Path], places: Sequence[tuple[int, int]]) -> list[Resume]:
    """The loss around every place of `places` that has rows enough on both sides."""
    loss, grad = paths[0].curve("loss"), paths[0].curve("grad_norm")
    found = []
    for position, (step, rewound) in enumerate(places):
        i = int(np.searchsorted(loss.step, step))
        following = places[position + 1][0] if position + 1 < len(places) else None
        until = len(loss) if following is None else int(np.searchsorted(loss.step, following))
        if i < 8 or until - i < 3:
            continue
        found.append(_resume(paths, loss, grad, i, min(until, i + TAIL_ROWS), rewound))
    return found


def _resume(paths: Sequence[Path], loss: Curve, grad: Curve, i: int, until: int, rewound: int) -> Resume:
    value = loss.value
    old = value[max(0, i - NOISE_ROWS) : i]
    noise = max(row_noise(old), 1e-6 * abs(float(np.median(old))))
    before = _due(paths, loss, i)
    rows = value[i:until]
    excess = rows - (_onward(loss, i, until) + before)
    shaken = _shaken(grad, int(loss.step[i]))
    widths = [k for k in ((2, *WIDTHS) if shaken else WIDTHS) if k <= len(rows)] or [len(rows)]
    spread = (JOINT_SIGMAS if shaken else SIGMAS) * MEDIAN_ERROR * noise * _inflation(old)
    start = float(np.median(value[: min(5, i)]))
    least = max(LEVEL_SHARE * abs(before), GAIN_SHARE * (start - before), 1e-12)
    limits = [max(spread * sqrt(1 / k + 1 / min(i, REFERENCE_ROWS)), least) for k in widths]
    jumps = [float(np.median(excess[:k])) for k in widths]
    best = max(range(len(widths)), key=lambda k: abs(jumps[k]) / limits[k])
    jump, limit = jumps[best], limits[best]
    rise = max(jump, jumps[0])
    back = _recovery(excess, rise, noise)
    regained = regained_row(rows, before, 0, noise) if back is None and jump > limit else None
    step = int(loss.step[i])
    grad_ratio = _ratio(grad, step, 2 * FIRST_ROWS)
    half = next((k for k in range(len(rows)) if np.median(excess[k : k + 5]) <= 0.5 * rise), None)
    kind: Kind = "clean"
    like: int | None = None
    # The median of the rows before lags behind a steep curve: what falls with the curve is not lower.
    if jump < -1.5 * limit:
        fall = _fallen(loss, i)
        before, jump = before - fall, jump + fall
        kind = "lower" if jump < -1.5 * limit else "clean"
    elif jump > limit:
        # A model that knows nothing is near the start of the run, however fast it learns again.
        large = shaken or (grad_ratio is not None and grad_ratio > 3)
        fresh = start - before > (2 if large else 4) * limit and rise > 0.6 * (start - before)
        kind = "fresh_model" if fresh else "transient" if back is not None else "level"
        like = None if fresh else _like(value[:i], rows, before + jump, limit)
        if like is not None and _repeats(value[:i], like, rows, excess, noise * _inflation(old)):
            kind = "older_checkpoint"
        elif like is not None and (back is not None or (regained is not None and regained < RELEARNT * (i - like))):
            lasts = float(loss.step[i + half] - loss.step[i]) if half is not None else np.inf
            brief = half is not None and (half <= MOMENT_ROWS or lasts <= MOMENT_STEPS)
            kind = "transient" if brief else "level"
            if brief and back is None:
                back, regained = regained, None
    return Resume(
        step, i, rewound, kind, before, before + (rise if jump > 0 else jump),
        float(np.median(rows[int(0.6 * len(rows)) :])), noise, limit,
        int(loss.step[i + back]) if back is not None and jump > limit else None,
        int(loss.step[i + regained]) if regained is not None else None,
        float(loss.step[i + half] - loss.step[i]) if half is not None and jump > limit else None,
        grad_ratio, _ratio(paths[0].curve("update_norm"), step, FIRST_ROWS), start,
        float(excess[0]), float(rows[:2].max()), int(loss.step[like]) if like is not None else None,
    )  # fmt: skip


def earlier_stretch(loss: Curve, i: int) -> int | None:
    """Row of the curve before row `i` from which on it once ran as it runs from `i` on, and not as it was to run there.

    A log that marks no restart may show one so: nothing but weights of that time learns the same once more.
    """
    value = loss.value
    if i < 8 or len(loss) - i < 6 * FIRST_ROWS:
        return None
    until = min(len(loss), i + TAIL_ROWS)
    rows, old = value[i:until], value[max(0, i - NOISE_ROWS) : i]
    noise = max(row_noise(old), 1e-6 * abs(float(np.median(old)))) * _inflation(old)
    before = float(np.median(value[max(0, i - REFERENCE_ROWS) : i]))
    excess = rows - (_onward(loss, i, until) + before)
    gain = float(np.median(value[: min(5, i)])) - before
    limit = max(SIGMAS * MEDIAN_ERROR * noise * sqrt(1 / FIRST_ROWS), LEVEL_SHARE * abs(before), GAIN_SHARE * gain)
    level = before + float(np.median(excess[:FIRST_ROWS]))
    like = _like(value[:i], rows, level, limit) if level - before > limit else None
    return like if like is not None and _repeats(value[:i], like, rows, excess, noise) else None


def _like(old: Floats, rows: Floats, level: float, limit: float) -> int | None:
    """Row of the curve before with the level of the first rows after; None where that is no place of a checkpoint."""
    width = min(len(rows), 2 * FIRST_ROWS)
    if len(old) < 4 * width or level <= 0:
        return None
    kernel = np.ones(width) / width
    level = float(np.mean(rows[:width]))
    smooth = np.convolve(np.convolve(old, kernel, mode="valid"), np.ones(9) / 9, mode="valid")
    above = np.flatnonzero(smooth >= level)
    row = int(above[-1]) + 4 if len(above) else 0
    first = max(width, int(YOUNGEST * len(old)))
    return row if first <= row < len(old) - 3 * width and abs(smooth[row - 4] - level) < limit else None


def _repeats(old: Floats, like: int, rows: Floats, excess: Floats, noise: float) -> bool:
    """Whether the rows after a restart run as those from row `like` on did, and not as those before the restart would."""
    length = min(len(rows), len(old) - like)
    if length < 6 * FIRST_ROWS:
        return False
    parts = 6
    error = MEDIAN_ERROR * noise * sqrt(2 * parts / length)
    again = [float(np.median(p)) for p in np.array_split(rows[:length] - old[like : like + length], parts)]
    apart = [float(np.median(p)) for p in np.array_split(excess[:length], parts)]
    # The excess must fade as the curve once fell: a level that merely stays higher is the same distance all along.
    faded = apart[0] - apart[-1] > 4 * error or apart[0] < 0
    return faded and max(map(abs, again)) < 4 * error and sum(a > 2 * error for a in apart) >= parts - 1


def _onward(loss: Curve, i: int, until: int) -> Floats:
    """How far the loss is expected to fall below its level at row `i`, row by row: its descent before in log time."""
    elapsed = _elapsed(loss)
    return np.asarray(-_descent(loss, i) * np.log(elapsed[i:until] / elapsed[i]), dtype=np.float64)


def _fallen(loss: Curve, i: int) -> float:
    """How far the loss falls from the middle of the reference rows to row `i` [nat]."""
    elapsed = _elapsed(loss)
    return _descent(loss, i) * float(np.log(elapsed[i] / np.median(elapsed[max(0, i - REFERENCE_ROWS) : i])))


def _elapsed(loss: Curve) -> Floats:
    return np.asarray(loss.step - loss.step[0] + 1, dtype=np.float64)


def _descent(loss: Curve, i: int) -> float:
    """How fast the loss falls before row `i`: nat per unit of the logarithm of the steps since the log began."""
    elapsed = _elapsed(loss)
    first = int(np.searchsorted(elapsed, elapsed[i] / 2))
    first = min(first, max(0, i - 16))
    middle = (first + i) // 2
    early, late = loss.value[first:middle], loss.value[middle:i]
    apart = np.log(np.median(elapsed[middle:i]) / np.median(elapsed[first:middle]))
    return max(0.0, float((np.median(early) - np.median(late)) / max(float(apart), 1e-9)))


def _inflation(old: Floats) -> float:
    """How much wider medians spread than for white noise, from the lag-one correlation around a running level."""
    if len(old) < 40:
        return 1.0
    # A curve through every 40 rows takes the descent out.
    parts = np.array_split(old[len(old) % 40 :], len(old) // 40)
    rest = np.concatenate([p - np.polyval(np.polyfit(np.arange(len(p)), p, 2), np.arange(len(p))) for p in parts])
    rest = np.clip(rest, *np.quantile(rest, [0.02, 0.98]))
    r = float(np.clip(np.mean(rest[1:] * rest[:-1]) / max(float(np.mean(rest**2)), 1e-30), 0.0, 0.8))
    return sqrt((1 + r) / (1 - r))


def _due(paths: Sequence[Path], loss: Curve, i: int) -> float:
    """The loss due at row `i`: what the run logged there before it was taken back, else the level of the rows before."""
    step = int(loss.step[i])
    for path in paths[1:]:
        old = path.curve("loss")
        k = int(np.searchsorted(old.step, step))
        again = old.value[k : k + FIRST_ROWS]
        if path.kind == "tail" and path.judged_from == step and len(again) >= 3:
            # The old rows may hold the crash itself: the rows before it count as well.
            return min(float(np.median(again)), float(np.median(loss.value[max(0, i - REFERENCE_ROWS) : i])))
    return float(np.median(loss.value[max(0, i - REFERENCE_ROWS) : i]))


def _recovery(excess: Floats, rise: float, noise: float) -> int | None:
    """First row whose median of nine is back at the level expected, None when it never is."""
    bound = max(noise, 0.15 * rise)
    for k in range(len(excess) - 2):
        if np.median(excess[k : k + 9]) <= bound:
            return k
    return None


def _shaken(grad: Curve, step: int) -> bool:
    """Whether the first two gradient norms from `step` on stand out from those before."""
    i = int(np.searchsorted(grad.step, step))
    before, after = grad.value[max(0, i - REFERENCE_ROWS) : i], grad.value[i : i + 2]
    if len(before) < 8 or len(after) < 2 or min(before.min(), after.min()) <= 0:
        return False
    level, first = float(np.median(np.log(before))), float(np.log(after).min())
    sigma = max(mad_sigma(np.log(before)), 0.02)
    return first - level > max(SHAKEN_Z * sigma, float(np.log(SHAKEN_RATIO)))


def _ratio(curve: Curve, step: int, rows: int) -> float | None:
    """Median of `rows` rows from `step` on over the rows before."""
    i = int(np.searchsorted(curve.step, step))
    before, after = curve.value[max(0, i - REFERENCE_ROWS) : i], curve.value[i : i + rows]
    if len(before) < 5 or len(after) < 3 or np.median(before) <= 0:
        return None
    return float(np.median(after) / np.median(before))


@dataclass(frozen=True, slots=True)
class FreshStart:
    """A log that begins late in a run with a loss that belongs to its beginning."""

    step: int
    first: float
    last: float
    grad_first: float | None
    grad_last: float | None


def fresh_start(loss: Curve, grad: Curve) -> FreshStart | None:
    """Whether a log from the middle of a run begins with the steep fall of a model that knows nothing.

    Rows that fall one after the other by several percent each, at a step count in the thousands, and gradient norms that
    fall with them, are those of an untrained or wrongly loaded model.
    """
    if len(loss) < 3 or loss.step[0] < 1000 or loss.step[0] < 5 * (loss.step[-1] - loss.step[0]):
        return None
    rows = loss.value[: min(len(loss), 50)]
    falling = float(np.mean(np.diff(rows) < 0))
    share = 1 - float(np.median(rows[-3:])) / float(rows[0]) if rows[0] > 0 else 0.0
    g = grad.value[: len(rows)]
    easing = len(g) >= 3 and g[-1] < 0.7 * g[0]
    if falling < 0.75 or share < 0.04 or not (easing or share > 0.25):
        return None
    ends = (float(g[0]), float(g[-1])) if len(g) >= 3 else (None, None)
    return FreshStart(int(loss.step[0]), float(rows[0]), float(rows[-1]), *ends)
