"""A chart as inline SVG: the envelope of a series, incidents shaded, points that are not finite marked at the top."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import Final

from gdiag.model import Series
from gdiag.renderers.plot import LOG_FROM
from gdiag.renderers.words import number, shown

_LEFT: Final = 56
_RIGHT: Final = 12
_TOP: Final = 22
_BOTTOM: Final = 20
_GAP: Final = 6
"""A hole in x breaks the line from this many usual intervals on."""
_MOST_CROSSES: Final = 60
"""Points that are not finite marked singly; more of them become a bar."""

Point = tuple[float, float, float]
"""x, low, high."""


@dataclass(frozen=True, slots=True)
class Band:
    """A stretch of x to shade."""

    first: float
    last: float
    style: str
    """The class of the page's style sheet that colours it."""


@dataclass(frozen=True, slots=True)
class Frame:
    """How a chart is cut and written."""

    width: int = 640
    height: int = 170
    ceiling: float = math.inf
    """Values above are drawn at the top."""
    label: Callable[[float], str] = "{:.0f}".format
    """How x is written."""
    log_x: bool = False
    held: float | None = None
    """A level to draw as a dashed line: the limit."""


def draw(series: Series, frame: Frame = Frame(), bands: Sequence[Band] = (), *, title: str = "") -> str | None:
    """The SVG element; None when no point is finite."""
    points = [p for p in zip(series.x, series.low, series.high, strict=True) if not frame.log_x or p[0] > 0]
    finite = [v for _, low, high in points for v in (low, high) if math.isfinite(v)]
    if not finite:
        return None
    if frame.held is not None:
        finite.append(frame.held)
    bottom, top = min(finite), min(max(finite), frame.ceiling)
    across = _Axis(
        points[0][0], points[-1][0], _LEFT, frame.width - _RIGHT, logarithmic=frame.log_x, binary=frame.log_x
    )
    logarithmic = bottom > 0 and top / bottom > LOG_FROM
    up = _Axis(bottom, top, frame.height - _BOTTOM, _TOP, logarithmic=logarithmic)
    unit = f" [{series.unit}]" if series.unit else ""
    said = shown(f"{title or series.name}{unit}") + (", logarithmic" if logarithmic else "")
    said += ", cut at the top" if max(finite) > top else ""
    parts = [
        f'<svg viewBox="0 0 {frame.width} {frame.height}" role="img" aria-label="{escape(said)}">',
        f'<text class="name" x="{_LEFT}" y="13">{escape(said)}</text>',
        *_shaded(bands, across, frame),
        *_ticks(across, up, frame),
        *_held(frame, up),
        *_curve(_stretches(points, holes=not frame.log_x), across, up),
        *_crosses([x for x, low, high in points if not (math.isfinite(low) and math.isfinite(high))], across),
        "</svg>",
    ]
    return "".join(parts)


@dataclass(frozen=True, slots=True)
class _Axis:
    """Values from `low` to `high` on pixels from `start` to `end`."""

    low: float
    high: float
    start: float
    end: float
    logarithmic: bool = False
    binary: bool = False
    """Ticks of a logarithmic axis at powers of two: message sizes."""

    def at(self, value: float) -> float:
        """The pixel of `value`, cut at both ends."""
        scale = math.log10 if self.logarithmic else _quarter
        low, high = scale(self.low), scale(self.high)
        share = (scale(min(max(value, self.low), self.high)) - low) / ((high - low) or 1.0)
        return self.start + (self.end - self.start) * share

    def ticks(self, about: int) -> list[float]:
        """Round values between both ends, both ends themselves where none is."""
        if self.binary:
            powers = range(math.ceil(math.log2(self.low)), math.floor(math.log2(self.high)) + 1)
            return [2.0**power for power in powers if power % max(1, -(-len(powers) // about)) == 0]
        if self.logarithmic:
            powers = range(math.ceil(math.log10(self.low)), math.floor(math.log10(self.high)) + 1)
            found = [10.0**power for power in powers][:: max(1, len(powers) // about)]
            return found if len(found) > 1 else [self.low, self.high]
        reach = self.high / about - self.low / about
        if not (reach > 0 and math.isfinite(reach)):
            return [self.low] if self.low == self.high else [self.low, self.high]
        size = 10.0 ** math.floor(math.log10(reach))
        step = next((size * by for by in (1, 2, 5, 10) if size * by >= reach), size)
        first = math.ceil(self.low / step)
        return [step * n for n in range(first, math.floor(self.high / step) + 1)]


def _quarter(value: float) -> float:
    """Only distances matter, and those between the largest floats must not overflow."""
    return value / 4


def _shaded(bands: Sequence[Band], across: _Axis, frame: Frame) -> Iterator[str]:
    for band in bands:
        if band.last < across.low or band.first > across.high:
            continue
        left, right = across.at(band.first), across.at(band.last)
        yield (
            f'<rect class="band {band.style}" x="{left - 1:.1f}" y="{_TOP}" width="{max(2.0, right - left + 2):.1f}" '
            f'height="{frame.height - _TOP - _BOTTOM}"/>'
        )


def _ticks(across: _Axis, up: _Axis, frame: Frame) -> Iterator[str]:
    floor = frame.height - _BOTTOM
    yield f'<path class="axis" d="M{_LEFT} {_TOP}V{floor}H{frame.width - _RIGHT}"/>'
    for value in up.ticks(4):
        y = up.at(value)
        yield f'<path class="grid" d="M{_LEFT} {y:.1f}H{frame.width - _RIGHT}"/>'
        yield f'<text class="tick" x="{_LEFT - 4}" y="{y + 3:.1f}" text-anchor="end">{escape(number(value))}</text>'
    for value in across.ticks(6):
        x = min(across.at(value), frame.width - _RIGHT - 8.0)
        yield (
            f'<text class="tick" x="{x:.1f}" y="{floor + 13}" text-anchor="middle">{escape(frame.label(value))}</text>'
        )


def _held(frame: Frame, up: _Axis) -> Iterator[str]:
    if frame.held is not None:
        y = up.at(frame.held)
        yield f'<path class="limit" d="M{_LEFT} {y:.1f}H{frame.width - _RIGHT}"/>'
        yield (
            f'<text class="tick" x="{frame.width - _RIGHT}" y="{y - 3:.1f}" text-anchor="end">'
            f"limit {escape(number(frame.held))}</text>"
        )


def _curve(stretches: Iterable[Sequence[Point]], across: _Axis, up: _Axis) -> Iterator[str]:
    """The envelope of each stretch of finite points: filled where it has a height, and a line along its top."""
    for stretch in stretches:
        dots = [(across.at(x), up.at(low), up.at(high)) for x, low, high in stretch]
        if len(dots) == 1:
            yield f'<circle class="point" cx="{dots[0][0]:.1f}" cy="{dots[0][2]:.1f}" r="2"/>'
            continue
        over = " ".join(f"{x:.1f},{high:.1f}" for x, _, high in dots)
        if any(high != low for _, low, high in dots):
            under = " ".join(f"{x:.1f},{low:.1f}" for x, low, _ in reversed(dots))
            yield f'<polygon class="envelope" points="{over} {under}"/>'
        yield f'<polyline class="line" points="{over}"/>'


def _stretches(points: Sequence[Point], *, holes: bool) -> Iterator[list[Point]]:
    """Runs of finite points; a hole in x ends one where `holes` is true."""
    gaps = sorted(b[0] - a[0] for a, b in pairwise(points))
    usual = gaps[int(0.9 * (len(gaps) - 1))] if gaps else 0.0
    reach = points[-1][0] - points[0][0]
    stretch: list[Point] = []
    for point in points:
        finite = math.isfinite(point[1]) and math.isfinite(point[2])
        hole = holes and bool(stretch) and point[0] - stretch[-1][0] > max(_GAP * usual, reach / 50)
        if stretch and (hole or not finite):
            yield stretch
            stretch = []
        if finite:
            stretch.append(point)
    if stretch:
        yield stretch


def _crosses(lost: Sequence[float], across: _Axis) -> Iterator[str]:
    if len(lost) > _MOST_CROSSES:
        left, right = across.at(lost[0]), across.at(lost[-1])
        yield f'<rect class="lost" x="{left:.1f}" y="{_TOP - 5}" width="{max(2.0, right - left):.1f}" height="4"/>'
        return
    for x in lost:
        yield f'<path class="cross" d="M{across.at(x) - 3:.1f} {_TOP - 6}l6 6m0 -6l-6 6"/>'
