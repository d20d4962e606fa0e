"""Megatron golden values: a JSON object of metrics, each with its steps as keys or as an interval.

The string "nan" in these files means that a metric was not logged at that step (both schemas of Megatron-LM's functional
tests); a metric that diverged would hold a number or a bare NaN.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from gdiag.errors import InputError
from gdiag.ingesters import columns, flat, json_salvage
from gdiag.ingesters.reading import Input, Options, Reading
from gdiag.ingesters.values import whole

FORMAT = "megatron-golden"
_PLACES = (b'"start_step"', b'"step_interval"')
_VALUES = re.compile(rb'\{\s*"[^"]+"\s*:\s*\{\s*"values"\s*:')
"""A first metric that begins with its values."""


def recognise(given: Input) -> float:
    """Metrics with `start_step` and `step_interval`, which may stand behind their values."""
    head = given.head.lstrip()
    if head[:1] != b"{":
        return 0.0
    if all(word in head[:4096] for word in _PLACES):
        return 0.95
    behind = _VALUES.match(head) is not None and all(word in given.data() for word in _PLACES)
    return 0.95 if behind else 0.0


def read(given: Input, options: Options) -> Reading:
    """A row per step at which anything was logged; of a cut or damaged file those before the damage.

    Raises:
        InputError: damaged from the start, or no metric holds a value.
    """
    document, rejects = json_salvage.document(given)
    if not isinstance(document, dict):
        raise InputError(f"{given.path} is no object of metrics")
    rows: dict[int, dict[str, flat.Cell]] = {}
    absent = 0
    for name, series in document.items():
        if isinstance(series, dict):
            absent += _collect(rows, str(name), series)
    if not rows:
        raise InputError(f"{given.path} is a golden-values file without values")
    cells = [{"step": step, **rows[step]} for step in sorted(rows)]
    notes = [f'{absent} values "nan", which means not logged in this format'] if absent else []
    frame = flat.to_frame(cells)
    losses = max((frame[name].count() for name in frame.columns if "loss" in name.lower()), default=frame.height)
    return columns.reading(
        given.path, FORMAT, frame, options, rejects=rejects, notes=notes, line=None, rows=int(losses) or frame.height
    )


def _collect(rows: dict[int, dict[str, flat.Cell]], name: str, series: Mapping[str, object]) -> int:
    """Puts one metric's values on their steps; returns how many were not logged."""
    values = series.get("values")
    start, interval = series.get("start_step"), series.get("step_interval")
    absent = 0
    if isinstance(values, dict):
        pairs = [(step, v) for k, v in values.items() if (step := whole(str(k))) is not None]
    elif isinstance(values, list) and isinstance(start, int) and isinstance(interval, int):
        pairs = [(start + i * interval, v) for i, v in enumerate(values)]
    else:
        return 0
    for step, value in pairs:
        if isinstance(value, str) and value.lower() == "nan":
            absent += 1
        elif isinstance(value, int | float | str):
            rows.setdefault(step, {})[name] = value
    return absent
