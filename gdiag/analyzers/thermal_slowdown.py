"""GPUs run below their clocks because they are too hot.

What it checks
    Samples with the thermal event reasons (software 0x20, hardware 0x40, hardware slowdown 0x8 on a hot GPU); where no
    reason was logged, loaded samples below 93 % of the highest clock within 5 °C of that model's limit. Temperature alone
    is never enough: hot GPUs with full clocks are GD605. From `share` of the loaded samples on it is a warning. Where neither
    reasons nor limits are known, a GPU below `ratio` of its peers' clocks in `outlying` of the moments under load, and at
    least 10 °C hotter than they are at those moments. Where no reasons are logged, clocks that fall below their own earlier
    level while the temperature stands at the model's limit, on all GPUs at once too.

Why it matters
    In synchronous training the slowest GPU sets the pace of all. The clock falls with the temperature, so the cost grows
    unnoticed; it also shortens the card's life.

What to do
    Look at airflow, fans, inlet temperature and neighbours first; a lower power limit costs a few per cent of clock and
    can save more; one card that repeats it needs new thermal paste or replacement; stagger load where a whole rack is hot.
"""

from __future__ import annotations

from gdiag.analyzers import gpu_place
from gdiag.measures import gpu_outliers
from gdiag.measures.clock_drops import Drop
from gdiag.measures.gpu_health import Event
from gdiag.measures.gpu_outliers import Outlier
from gdiag.measures.run import RunView
from gdiag.model import Finding, Measure, Severity

CODE = "GD601"
NAME = "thermal-slowdown"
NEEDS: tuple[str, ...] = ("gpus.reasons|gpus.clock_sm", "gpus.reasons|gpus.temperature|gpus.temperature_margin")


def analyze(
    run: RunView, *, share: float = 0.01, seconds: float = 60.0, ratio: float = 0.95, outlying: float = 0.2
) -> list[Finding]:
    view = run.telemetry
    if view is None:
        return []
    events = view.health.events("thermal")
    told = {unit for event in events for unit in event.gpus}
    outliers = gpu_outliers.clock_outliers(view.health.partial, ratio=ratio, share=outlying)
    by_peers = [_by_peers(run, o, ratio) for o in outliers if o.throttled and o.unit not in told]
    told |= {o.unit for o in outliers}
    by_past = [_by_past(run, d) for d in run.clock_drops if d.why == "heat" and not told & set(d.units)]
    return [_finding(run, event, share, seconds) for event in events] + by_peers + by_past


def _by_past(run: RunView, drop: Drop) -> Finding:
    """GPUs that slow down below their own earlier clocks at their model's limit, no reason being logged."""
    view = run.telemetry
    total = view.health.units.height if view is not None else 0
    where, place = gpu_place.located(run, drop.units, drop.start, drop.end)
    reached = f" at up to {drop.temperature:.0f} °C" if drop.temperature is not None else ""
    limit = f", the model's limit is {drop.limit:.0f} °C" if drop.limit is not None else ""
    scope = "one GPU" if len(drop.units) == 1 else "all GPUs" if len(drop.units) == total else "several GPUs"
    return Finding(
        CODE, NAME, Severity.WARNING,
        f"{gpu_place.named(drop.units, total)} throttle{'s' if len(drop.units) == 1 else ''} for heat: clocks fall from {drop.clock_before:.0f} "
        f"to {drop.clock:.0f} MHz under load{reached}{limit}{gpu_place.effect(place)}",
        where, (*gpu_place.of_drop(drop, place), Measure("told_by", "clocks against their own past, and temperature"), Measure("scope", scope)),
    )  # fmt: skip


def _by_peers(run: RunView, slow: Outlier, ratio: float) -> Finding:
    """A GPU that is slower and much hotter than its peers, where nothing else was logged that could tell."""
    where, place = gpu_place.located(run, [slow.unit], slow.start, slow.end)
    evidence = [
        Measure("clock_throttled", round(slow.clock, 1), "MHz"), Measure("clock_peers", round(slow.peers, 1), "MHz"),
        Measure("ratio", round(slow.ratio, 4), "", ratio), Measure("throttled_share", round(100 * slow.share, 1), "%"),
        Measure("temperature", round(slow.temperature or 0.0, 1), "°C"),
        Measure("above_peers", round(slow.warmer or 0.0, 1), "°C", gpu_outliers.WARMER),
        Measure("told_by", "clocks and temperature of its peers"), Measure("scope", "one GPU"),
    ]  # fmt: skip
    if place.effect is not None:
        evidence.append(Measure("step_time_effect", round(100 * place.effect, 2), "%"))
    return Finding(
        CODE, NAME, Severity.WARNING,
        f"{gpu_place.named([slow.unit], 0)} runs at {slow.clock:.0f} MHz where its peers run at {slow.peers:.0f} MHz, and is "
        f"{slow.warmer:.0f} °C hotter than they are, in {100 * slow.share:.0f} % of the moments under load{gpu_place.effect(place)}",
        where, tuple(evidence),
    )  # fmt: skip


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
