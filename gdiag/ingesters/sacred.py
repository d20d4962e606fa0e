"""Sacred `metrics.json`: every metric with its own steps, timestamps and values."""

from __future__ import annotations

from gdiag.errors import InputError
from gdiag.ingesters import columns, flat, json_salvage
from gdiag.ingesters.reading import Input, Options, Reading

FORMAT = "sacred"


def recognise(given: Input) -> float:
    """Metrics with `steps`, beside `timestamps` or `values` further on."""
    head = given.head
    return (
        0.98
        if head.lstrip()[:1] == b"{"
        and b'"steps": [' in head[:4096]
        and (b'"timestamps"' in head or b'"values"' in head)
        else 0.0
    )


def read(given: Input, options: Options) -> Reading:
    """A row per step at which any metric was logged; of a cut or damaged file those before the damage.

    Raises:
        InputError: damaged from the start, or without metrics.
    """
    document, rejects = json_salvage.document(given)
    rows: dict[int, dict[str, flat.Cell]] = {}
    for name, series in document.items() if isinstance(document, dict) else ():
        if not isinstance(series, dict):
            continue
        steps, values, stamps = series.get("steps"), series.get("values"), series.get("timestamps")
        if not isinstance(steps, list) or not isinstance(values, list):
            continue
        for i, (step, value) in enumerate(zip(steps, map(_plain, values), strict=False)):
            if isinstance(step, int | float) and (isinstance(value, int | float | str) or value is None):
                row = rows.setdefault(int(step), {"step": int(step)})
                row[str(name)] = value
                if isinstance(stamps, list) and i < len(stamps) and isinstance(stamps[i], str):
                    row["timestamp"] = stamps[i]
    if not rows:
        raise InputError(f"{given.path} holds no metrics with steps")
    frame = flat.to_frame([rows[step] for step in sorted(rows)])
    return columns.reading(given.path, FORMAT, frame, options, rejects=rejects, line=None)


def _plain(value: object) -> object:
    """A value that jsonpickle wrote with its numpy type as the number in it."""
    return value.get("value") if isinstance(value, dict) else value
