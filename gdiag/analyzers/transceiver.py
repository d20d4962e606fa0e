"""A transceiver receives too little light, or one of its own alarm flags is on.

What it checks
    Received power of every lane against the module's own low-alarm limit, and the module's alarm and warning flags for
    power, bias, temperature and voltage (ethtool -m). No light at all (-40 dBm) on every lane is an unplugged fibre, an
    unused port or a far end that is off, and a note; on one lane of several it is a fault. A module without
    diagnostics (DDM) cannot be judged, and its source says so.

Why it matters
    Too little light makes bit errors, then retransmissions, then a link that goes down.

What to do
    Clean the connectors and look at the bend and length of the fibre, then the far end's transmit power; replace the
    module on whose side the power is missing. Heat: airflow at the cage.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from gdiag.measures.run import RunView
from gdiag.measures.transceivers import FIGURES, Reading, readings
from gdiag.model import Finding, Measure, Severity

CODE = "GD712"
NAME = "transceiver"
NEEDS: tuple[str, ...] = ("modules.value",)
_WORDS: Final = {
    "rx_power": "received power", "tx_power": "transmitted power", "bias": "laser bias current", "temperature": "temperature", "voltage": "supply voltage",
}  # fmt: skip


def analyze(run: RunView, *, margin: float = 0.0, most: int = 50) -> list[Finding]:
    """margin: dB above the low-alarm limit from which received power is too little. most: findings at most."""
    modules: dict[tuple[str | None, str | None, int | None], list[Reading]] = {}
    for seen in readings(run.modules):
        modules.setdefault((seen.host, seen.device, seen.source), []).append(seen)
    found = [finding for own in modules.values() for finding in _module(run, own, margin)]
    return sorted(found, key=lambda f: -f.severity)[:most]


def _module(run: RunView, own: Sequence[Reading], margin: float) -> Iterator[Finding]:
    lanes = [r for r in own if r.figure == "rx_power" and r.value is not None]
    dark = [r for r in lanes if r.dark]
    # A flag without a lane is that of the lane without light; where all are dark, every flag of the power is.
    unlit = {r.lane for r in (own if dark and len(dark) == len(lanes) else dark)} | ({None} if dark else set())
    if dark and len(dark) == len(lanes):
        text = f"{_module_name(dark[0])} receives no light ({dark[0].value:g} dBm): fibre unplugged, port unused, or the far end off"
        yield _finding(run, Severity.INFO, text, dark[0], "dark", dark[0].limits.get("low_alarm"))
        lanes = dark = []
    for r in dark:
        text = f"{_subject(r)} receives no light ({r.value:g} dBm) where other lanes do"
        yield _finding(run, Severity.WARNING, text, r, "low_light", r.limits.get("low_alarm"))
    weak = [
        r for r in lanes if not r.dark and r.value is not None and r.value < r.limits.get("low_alarm", -1e9) + margin
    ]
    for r in weak:
        text = f"{_subject(r)} receives {r.value:g} dBm, below its low-alarm limit of {r.limits['low_alarm']:g} dBm"
        yield _finding(run, Severity.WARNING, text, r, "low_light", r.limits["low_alarm"])
    told = {(r.figure, r.lane) for r in weak} | {("rx_power", lane) for lane in unlit}
    for r in own:
        if (r.figure, r.lane) in told:
            continue
        for level, severity in (("alarm", Severity.WARNING), ("warning", Severity.INFO)):
            on = next((side for side in ("high", "low") if r.flags.get(f"{side}_{level}")), None)
            if on is not None:
                limit = r.limits.get(f"{on}_{level}")
                value = f" ({r.value:g} {FIGURES[r.figure]})" if r.value is not None else ""
                text = f"{_name(r)}: {on} {level} flag of its {_WORDS[r.figure]} is on{value}"
                yield _finding(run, severity, text, r, "heat" if r.figure == "temperature" else "flag", limit)
                break


def _finding(run: RunView, severity: Severity, text: str, seen: Reading, kind: str, limit: float | None) -> Finding:
    value = () if seen.value is None else (Measure(seen.figure, seen.value, FIGURES.get(seen.figure, ""), limit),)
    evidence = (*value, Measure("kind", kind), Measure("port", _name(seen)))
    where = run.where({"source": seen.source, "line": seen.line}, host=seen.host)
    return Finding(CODE, NAME, severity, text, where, evidence)


def _module_name(seen: Reading) -> str:
    return f"the transceiver of {seen.device}" if seen.device else "the transceiver"


def _name(seen: Reading) -> str:
    return _module_name(seen) + (f", lane {seen.lane}" if seen.lane is not None else "")


def _subject(seen: Reading) -> str:
    """The name before a verb."""
    return _name(seen) + ("," if seen.lane is not None else "")
