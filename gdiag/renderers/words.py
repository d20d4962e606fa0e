"""Figures, times and places in words, and text from logs made safe to show."""

from __future__ import annotations

import math
import re
import unicodedata
from datetime import UTC, datetime, timedelta
from typing import Final

from gdiag.model import Cause, Cost, DataWindow, Incident, Location, Measure, Value

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_LONGEST: Final = 2000


def quiet_json(text: str) -> str:
    """JSON text without a character that acts on a terminal or turns the writing round: all become \\u escapes.

    A file name that is no UTF-8 holds lone surrogates; as \\udcXX they are valid JSON and lose nothing.
    """
    text = re.sub(r"[\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]", lambda m: f"\\u{ord(m[0]):04x}", text)
    return text.encode("utf-8", "backslashreplace").decode()


def shown(text: str) -> str:
    """`text` with everything that could steer a terminal or hide itself written as an escape; never more than one line."""
    if len(text) > _LONGEST:
        text = f"{text[:_LONGEST]}… ({len(text):,} characters)"
    if text.isascii() and text.isprintable():
        return text
    return "".join(_escaped(c) if unicodedata.category(c) in _HIDDEN else c for c in text)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode()


def number(value: Value | None) -> str:
    """A figure to four significant digits, whole numbers with thousands separators, text made safe."""
    if value is None:
        return "–"
    if isinstance(value, str):
        return shown(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("inf" if value > 0 else "-inf")
    if float(value).is_integer() and abs(value) < 1e15:
        return f"{int(value):,}"
    if 1e-3 <= abs(value) < 1e6:
        digits = max(0, 3 - math.floor(math.log10(abs(value))))
        text = f"{value:,.{digits}f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    mantissa, exponent = f"{value:.3e}".split("e")
    return f"{mantissa.rstrip('0').rstrip('.')}e{int(exponent)}"


def quantity(measure: Measure) -> str:
    """peak excess 3.1 nat (limit 0.2)."""
    text = f"{shown(measure.name).replace('_', ' ')} {number(measure.value)}{unit(measure.unit)}"
    return text if measure.limit is None else f"{text} (limit {number(measure.limit)})"


def unit(name: str) -> str:
    """The unit with the space before it; nothing for a bare number."""
    return f" {shown(name)}" if name else ""


def duration(seconds: float) -> str:
    """1.8 ms, 6.4 s, 20 min 34 s, 3 h 05 min, 2 d 4 h."""
    if 0 < seconds < 0.1:
        return f"{number(float(f'{1000 * seconds:.2g}'))} ms"
    if not math.isfinite(seconds) or seconds < 60:
        return f"{number(seconds)} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02} s"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes:02} min"
    return f"{hours // 24} d {hours % 24} h"


def clock(seconds: float, zone_known: bool) -> str | None:
    """2023-11-14 22:13:20 UTC; without UTC when the zone of the clock is unknown; None when out of range."""
    if not math.isfinite(seconds):
        return None
    try:
        when = _EPOCH + timedelta(seconds=seconds)
    except OverflowError:
        return None
    return f"{when:%Y-%m-%d %H:%M:%S}{' UTC' if zone_known else ''}"


def hour(seconds: float) -> str:
    """22:13:20."""
    text = clock(seconds, zone_known=False)
    return text.partition(" ")[2] if text is not None else "?"


def span(first: int, last: int | None) -> str:
    """267–271, or 267 alone."""
    return f"{first}" if last is None or last <= first else f"{first}–{last}"


def when(incident: Incident) -> str:
    """step 267–271 · 2023-11-14 22:13:20 UTC, for 5 min."""
    parts = []
    if incident.onset_step is not None:
        parts.append(f"step {span(incident.onset_step, incident.last_step)}")
    if incident.onset_time is not None and (text := clock(incident.onset_time, incident.zone_known)):
        if incident.last_time is not None and incident.last_time > incident.onset_time:
            text += f", for {duration(incident.last_time - incident.onset_time)}"
        parts.append(text)
    return " · ".join(parts)


def where(incident: Incident) -> str:
    """layer blocks.0.fc · rank 3 · node-1 GPU 2 · samples 4272–4287."""
    return " · ".join([*_place(incident.layer, incident.rank, incident.host, incident.gpu), *_samples(incident.data)])


def _place(layer: str | None, rank: int | None, host: str | None, gpu: int | None) -> list[str]:
    parts = []
    if layer is not None:
        parts.append(f"layer {shown(layer)}")
    if rank is not None:
        parts.append(f"rank {rank}")
    if host is not None and gpu is not None:
        parts.append(f"{shown(host)} GPU {gpu}")
    elif host is not None:
        parts.append(f"host {shown(host)}")
    elif gpu is not None:
        parts.append(f"GPU {gpu}")
    return parts


def _samples(data: DataWindow | None) -> list[str]:
    return [] if data is None else [f"samples {span(data.first_sample, data.last_sample - 1)}"]


def confidence(cause: Cause) -> str:
    """high (0.98), or what a score that no evidence stands behind rests on: medium (0.61 by loss and gradient alone)."""
    said = {
        "evidence": "",
        "curve": " by the curves alone",
        "prior": "; nothing logged points to one cause" if cause.cause == "unknown"
        else " by its usual share; nothing logged confirms it",
    }  # fmt: skip
    return f"{cause.band} ({cause.score:.2f}{said[cause.basis]})"


def tail(path: str, most: int = 40) -> str:
    """A path shown by its last parts: …/node-3/attempt_2/run.jsonl."""
    parts = shown(path).split("/")
    while len(parts) > 1 and len("/".join(parts)) + 2 > most:
        parts = parts[1:]
    return "/".join(parts) if len("/".join(parts)) == len(shown(path)) else "…/" + "/".join(parts)


def broken(path: str, width: int) -> str:
    """A path over several lines of at most `width` columns where it can be parted between its parts."""
    lines = [""]
    for part in shown(path).replace("/", "/\0").split("\0"):
        if lines[-1] and len(lines[-1]) + len(part) > width:
            lines.append("")
        lines[-1] += part
    return "\n".join(lines)


def place(location: Location) -> str:
    """logs/run.jsonl:268 · step 267–271 · layer blocks.0.fc."""
    parts = []
    if location.file is not None:
        parts.append(shown(location.file) + (f":{location.line}" if location.line is not None else ""))
    if location.step is not None:
        parts.append(f"step {span(location.step, location.last_step)}")
    return " · ".join([*parts, *_place(location.layer, location.rank, location.host, location.gpu)])


def cost(spent: Cost) -> str:
    """5 steps · 6.4 s · 2.7 GPU-hours."""
    parts = []
    if spent.steps is not None:
        parts.append(count(spent.steps, "step"))
    if spent.seconds is not None:
        parts.append(duration(spent.seconds))
    if spent.gpu_hours is not None:
        parts.append(f"{number(spent.gpu_hours)} GPU-hours")
    return " · ".join(parts)


def count(how_many: int, thing: str) -> str:
    """1 step, 5 steps."""
    return f"{how_many:,} {thing}{'' if how_many == 1 else 's'}"
