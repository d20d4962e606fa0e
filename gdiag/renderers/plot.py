"""A small plot in braille characters: the envelope of a series, its onset and its non-finite points marked."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from gdiag.model import Incident, Pattern, Report, Series
from gdiag.reference.sizes import size_text
from gdiag.renderers.words import hour, number

LOG_FROM: Final = 30.0
"""Ratio of the largest to the smallest value above which a logarithmic axis shows more."""
_NEAREST: Final = 80
"""Points shown at least, where there are so many."""
_FAR: Final = 1.0
"""A value is cut when it stands this many times the height of the others above them."""
_FEW: Final = 50
_PLOTTED: Final[dict[Pattern, tuple[str, ...]]] = {
    "gradient_explosion": ("grad_norm", "loss"), "vanishing_gradient": ("grad_norm", "loss"),
    "dead_layer": ("grad_norm", "loss"), "layer_outlier": ("grad_norm", "loss"),
    "parameter_growth": ("param_norm", "loss"), "parameter_jump": ("param_norm", "loss"),
    "lr_discontinuity": ("lr", "loss"), "lr_schedule": ("lr", "loss"), "eval_divergence": ("eval_loss", "loss"),
    "slow_steps": ("step_time",), "periodic_slow_steps": ("step_time",), "step_time_drift": ("step_time",),
    "step_time_shift": ("step_time",), "straggler": ("step_time",), "thermal_slowdown": ("step_time",),
    "power_limit": ("step_time",), "power_brake": ("step_time",), "hang": ("step_time", "loss"),
}  # fmt: skip
"""Pattern → the series that show it, the first that was logged."""
_SWEPT: Final = 4
"""Sizes from which a benchmark is a curve."""
_DOTS: Final = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
"""Bits of the braille pattern, by row from the top and column (Unicode block U+2800)."""


@dataclass(frozen=True, slots=True)
class Plot:
    """The lines of a plot, top first, without styles."""

    title: str
    labels: tuple[str, ...]
    """Left axis, one per row, all of one width."""
    rows: tuple[str, ...]
    marks: str
    """Under the rows: ▲ at the onset, × where a value is not finite."""
    axis: str
    """First and last x under the marks."""


def window(series: Series, onset: float, last: float | None) -> tuple[float, float]:
    """What to show around an incident: its own length before and after it, and the nearest points at least."""
    end = onset if last is None else max(last, onset)
    near = sorted(abs(x - onset) for x in series.x)[:_NEAREST]
    pad = max(end - onset, near[-1] if near else 0.0)
    return onset - pad, end + pad


def inside(series: Series, first: float, last: float) -> list[tuple[float, float, float]]:
    """The points (x, low, high) from `first` to `last`, both inclusive."""
    return [p for p in zip(series.x, series.low, series.high, strict=True) if first <= p[0] <= last]


def cut(series: Series, points: Sequence[tuple[float, float, float]]) -> Series:
    """`series` with these points alone."""
    return replace(
        series, x=tuple(p[0] for p in points), low=tuple(p[1] for p in points), high=tuple(p[2] for p in points)
    )


def draw(
    series: Series, onset: float, last: float | None, *, width: int, height: int,
    label: Callable[[float], str] = "{:.0f}".format,
) -> Plot | None:  # fmt: skip
    """The series around onset … last in `height` rows of `width` columns; None when nothing finite lies there.

    label: how x is written under the plot.
    """
    first, end = window(series, onset, last)
    points = inside(series, first, end)
    finite = [v for _, low, high in points for v in (low, high) if math.isfinite(v)]
    if not finite:
        return None
    bottom, top = min(finite), min(max(finite), ceiling(points, onset, last))
    height = height if top > bottom else 1
    logarithmic = bottom > 0 and top / bottom > LOG_FROM
    scale = math.log10 if logarithmic else _quarter
    low_end, high_end = scale(bottom), scale(top)
    reach = (high_end - low_end) or 1.0
    texts = [number(top), *[""] * (height - 2), number(bottom)][:height]
    margin = max(map(len, texts))
    columns = max(8, width - margin - 1)
    x0, x1 = points[0][0], points[-1][0]
    grid = [[0] * columns for _ in range(height)]
    marks = [" "] * columns
    before: tuple[int, int] | None = None
    for x, low, high in points:
        dot = round((x - x0) / ((x1 - x0) or 1.0) * (2 * columns - 1))
        if not (math.isfinite(low) and math.isfinite(high)):
            marks[dot // 2] = "×"
            before = None
            continue
        levels = sorted(round((scale(min(v, top)) - low_end) / reach * (4 * height - 1)) for v in (low, high))
        _fill(grid, dot, *levels)
        if before is not None:
            _join(grid, before, (dot, levels[0]))
        before = dot, levels[1] if high != low else levels[0]
    if x0 <= onset <= x1:
        marks[round((onset - x0) / ((x1 - x0) or 1.0) * (2 * columns - 1)) // 2] = "▲"
    unit = f" [{series.unit}]" if series.unit else ""
    return Plot(
        title=f"{series.name}{unit}{', logarithmic' if logarithmic else ''}{', cut at the top' if max(finite) > top else ''}",
        labels=tuple(text.rjust(margin) for text in texts),
        rows=tuple("".join(chr(0x2800 + cell) for cell in row) for row in grid),
        marks="".join(marks).rstrip(),
        axis=_axis(x0, onset, x1, columns, label),
    )


def _quarter(value: float) -> float:
    """Only distances matter, and those between the largest floats must not overflow."""
    return value / 4


def ceiling(points: Sequence[tuple[float, float, float]], onset: float, last: float | None) -> float:
    """Where the plot is cut so that a value far from the incident and far above all others does not flatten it."""
    end = onset if last is None else max(last, onset)
    own = [high for x, _, high in points if onset <= x <= end and math.isfinite(high)]
    others = sorted(high for x, _, high in points if not onset <= x <= end and math.isfinite(high))
    if len(others) < _FEW:
        return math.inf
    usual, least = others[int(0.98 * (len(others) - 1))], others[int(0.02 * (len(others) - 1))]
    reach = max([usual, *own])
    return reach if others[-1] / 4 - reach / 4 > _FAR * (reach / 4 - least / 4) else math.inf


def _fill(grid: list[list[int]], dot: int, low: int, high: int) -> None:
    height = len(grid)
    for level in range(low, high + 1):
        row, part = divmod(4 * height - 1 - level, 4)
        grid[row][dot // 2] |= _DOTS[part][dot % 2]


def _join(grid: list[list[int]], start: tuple[int, int], end: tuple[int, int]) -> None:
    """A line between two points, so that a step of the curve shows as one."""
    (x0, y0), (x1, y1) = start, end
    level = y0
    for dot in range(x0 + 1, x1 + 1):
        target = round(y0 + (y1 - y0) * (dot - x0) / (x1 - x0))
        _fill(grid, dot, min(level, target), max(level, target))
        level = target


def _axis(first: float, onset: float, last: float, columns: int, label: Callable[[float], str]) -> str:
    """The steps at both ends and, where there is room, at the onset."""
    left, middle, right = (label(x) for x in (first, onset, last))
    line = list(left + " " * max(1, columns - len(left) - len(right)) + right)
    if first < onset < last:
        at = round((onset - first) / (last - first) * (columns - 1)) - len(middle) // 2
        if len(left) < at and at + len(middle) < columns - len(right):
            line[at : at + len(middle)] = middle
    return "".join(line)


@dataclass(frozen=True, slots=True)
class Subject:
    """What to plot for an incident: a series and the stretch of its x that the incident takes."""

    series: Series
    onset: float
    last: float | None
    label: Callable[[float], str] = "{:.0f}".format
    """How x is written: a step, or a time of day."""


def subject(report: Report, incident: Incident) -> Subject | None:
    """The series that shows the incident, over steps where its step is known, else over time; None without one."""
    if incident.onset_step is not None:
        series = _choose(report.series, _PLOTTED.get(incident.pattern, ("loss", "grad_norm")), incident)
        return Subject(series, incident.onset_step, incident.last_step) if series is not None else None
    if incident.onset_time is not None:
        series = _choose(report.series, ("clock_sm", "temperature"), incident)
        return Subject(series, incident.onset_time, incident.last_time, hour) if series is not None else None
    return None


def _choose(series: Sequence[Series], names: Sequence[str], incident: Incident) -> Series | None:
    """The first of `names` that was logged: of the incident's GPU, of its layer or block, else of the whole run."""
    for name in names:
        own = [s for s in series if s.name == name and s.run == incident.run]
        card = [s for s in own if s.gpu is not None and (s.host, s.gpu) == (incident.host, incident.gpu)]
        inside = [s for s in own if incident.layer is not None and f"{s.layer}.".startswith(f"{incident.layer}.")]
        for candidate in (*card, *inside, *(s for s in own if s.layer is None and s.gpu is None)):
            return candidate
    return None


def sweep(series: Series, limit: float | None, *, width: int, height: int) -> Plot | None:
    """Bandwidth over message size on a logarithmic axis, with a dotted line at `limit` where it lies inside."""
    points = [p for p in zip(series.x, series.low, series.high, strict=True) if p[0] > 0]
    if len(points) < _SWEPT:
        return None
    top = max([high for _, _, high in points] + ([limit] if limit else []))
    if top <= 0:
        return None
    logs = Series(series.name, series.unit, series.run, tuple(math.log2(x) for x, _, _ in points),
                  tuple(low for _, low, _ in points), tuple(high for _, _, high in points))  # fmt: skip
    rows = [[0] * max(8, width - 8) for _ in range(height)]
    columns = len(rows[0])
    first, last = logs.x[0], logs.x[-1]
    before: tuple[int, int] | None = None
    for x, low, high in zip(logs.x, logs.low, logs.high, strict=True):
        dot = round((x - first) / (last - first) * (2 * columns - 1))
        levels = [round(value / top * (4 * height - 1)) for value in (low, high)]
        _fill(rows, dot, *levels)
        if before is not None:
            _join(rows, before, (dot, levels[0]))
        before = dot, levels[1]
    texts = ["".join(chr(0x2800 + cell) for cell in row) for row in rows]
    held = ""
    if limit:
        at = height - 1 - round(limit / top * (4 * height - 1)) // 4
        texts[at] = texts[at].replace(chr(0x2800), "┄")
        held = f", limit {number(limit)} ┄"
    labels = [number(top), *[""] * (height - 2), "0"]
    margin = max(map(len, labels))
    ends = (size_text(series.x[0]), size_text(series.x[-1]))
    return Plot(
        title=f"{series.name} [{series.unit}] over message size, logarithmic{held}",
        labels=tuple(text.rjust(margin) for text in labels), rows=tuple(texts), marks="",
        axis=ends[0] + " " * max(1, columns - len(ends[0]) - len(ends[1])) + ends[1],
    )  # fmt: skip
