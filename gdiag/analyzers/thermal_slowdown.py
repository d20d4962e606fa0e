"""GPUs run below their clocks because they are too hot.

What it checks
    Samples with the thermal event reasons (software 0x20, hardware 0x40, hardware slowdown 0x8 on a hot GPU); where no
    reason was logged, loaded samples below 93 % of the highest clock within 5 °C of that model's limit. Temperature alone
    is never enough: hot GPUs with full clocks are GD605. From `share` of the loaded samples on it is a warning.

Why it matters
    In synchronous training the slowest GPU sets the pace of all. The clock falls with the temperature, so the cost grows
    unnoticed; it also shortens the card's life.

What to do
    Look at airflow, fans, inlet temperature and neighbours first; a lower power limit costs a few per cent of clock and
    can save more; one card that repeats it needs new thermal paste or replacement; stagger load where a whole rack is hot.
"""

from __future__ import annotations

from gdiag.analyzers import gpu_place
from gdiag.measures.gpu_health import Event
from gdiag.measures.run import RunView
from gdiag.model import Finding, Measure, Severity

CODE = "GD601"
NAME = "thermal-slowdown"
NEEDS: tuple[str, ...] = ("gpus.reasons|gpus.clock_sm", "gpus.reasons|gpus.temperature|gpus.temperature_margin")


def analyze(run: RunView, *, share: float = 0.01, seconds: float = 60.0) -> list[Finding]:
    view = run.telemetry
    if view is None:
        return []
    return [_finding(run, event, share, seconds) for event in view.health.events("thermal")]


def _finding(run: RunView, event: Event, share: float, seconds: float) -> Finding:
    view = run.telemetry
    assert view is not None
    where, place = gpu_place.located(run, event.gpus, event.start, event.end)
    heavy = event.of_all >= share or (event.share >= 0.2 and event.end - event.start >= seconds)
    heat = f" at up to {event.temperature:.0f} °C" if event.temperature is not None else ""
    clock = ""
    if event.clock_inside is not None and event.clock_max is not None:
        clock = f", clocks {event.clock_inside:.0f} of {event.clock_max:.0f} MHz"
    return Finding(
        CODE, NAME, Severity.WARNING if heavy else Severity.INFO,
        f"{gpu_place.named(event.gpus, view.health.units.height)} throttle{'s' if len(event.gpus) == 1 else ''} for heat in "
        f"{100 * event.share:.0f} % of the loaded samples{heat}{clock}{gpu_place.effect(place)}",
        where,
        (*gpu_place.figures(run, event, place, share), Measure("scope", scope(run, event))),
    )  # fmt: skip


def scope(run: RunView, event: Event) -> str:
    """One GPU, one host, or more: tells a card from a fan from a room."""
    view = run.telemetry
    total = view.health.units.height if view is not None else 0
    hosts = {host for host, _ in event.gpus}
    if len(event.gpus) == 1:
        return "one GPU"
    if len(event.gpus) == total:
        return "all GPUs"
    return "one host" if len(hosts) == 1 else "several hosts"
