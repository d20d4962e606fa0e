"""A network port counts errors, is down, or runs slower than its peers.

What it checks
    Error counters against thresholds with their source (`gdiag/reference/port_counters.tsv`): one reading says only that
    it happened since the last reset (a saturated counter is "at least"), two readings say what grows. Port state and rate
    against the other ports of the same output. All RoCE traffic on priority 0 and none on the lossless one.

Why it matters
    A link that retrains or drops stalls every collective that crosses it; discards cost retransmissions; a missing
    priority means that flow control never protects training traffic.

What to do
    Errors that grow: clean or replace the cable or transceiver, then the card; check both ends. Discards and waits:
    congestion, look at routing and ECN/PFC. Clear the counters, or take two readings around a job, to date them.
"""

from __future__ import annotations

from collections.abc import Iterator

from gdiag.measures.ports import Counter, counters
from gdiag.measures.run import RunView
from gdiag.model import Finding, Measure, Severity
from gdiag.reference.port_counters import Threshold, thresholds

CODE = "GD706"
NAME = "port-errors"
NEEDS: tuple[str, ...] = ("ports.value",)


def analyze(run: RunView, *, factor: float = 1.0, slow_rate: float = 0.9) -> list[Finding]:
    """factor: multiplies every threshold. slow_rate: share of the fastest port's rate below which a port is slow."""
    seen = list(counters(run.ports))
    alike: dict[tuple[str, Severity, bool], list[Counter]] = {}
    for c in seen:
        limit = thresholds().get(c.counter)
        judged = _judge(c, limit, factor) if limit is not None else None
        if judged is not None:
            alike.setdefault((c.counter, *judged), []).append(c)
    found = [_errors(run, same, *key[1:], factor) for key, same in alike.items()]
    return [*found, *_states(run, seen, slow_rate), *_priorities(run, seen)]


def _judge(seen: Counter, limit: Threshold, factor: float) -> tuple[Severity, bool] | None:
    """Severity, and whether growth is the reason."""
    if seen.growth is not None and limit.growth is not None and seen.growth > factor * limit.growth:
        return (Severity.CRITICAL if seen.counter == "link_downed" else Severity.WARNING), True
    if seen.growth == 0:
        return None
    for severity, bound in ((Severity.WARNING, limit.warning), (Severity.INFO, limit.info)):
        if bound is not None and seen.last > factor * bound:
            return severity, False
    return None


def _errors(run: RunView, same: list[Counter], severity: Severity, grown: bool, factor: float) -> Finding:
    """Ports with the same counter at the same severity are one finding, named by the worst."""
    worst = max(same, key=lambda c: (c.growth or 0.0) if grown else c.last)
    limit = thresholds()[worst.counter]
    others = f" and {len(same) - 1} more ports" if len(same) > 1 else ""
    least = "at least " if worst.saturated else ""
    if grown:
        value, bound = worst.growth or 0.0, limit.growth
        text = (
            f"{worst.name}{others}: {worst.counter} grew by {least}{value:.0f} between two readings ({limit.meaning})"
        )
    else:
        value, bound = worst.last, limit.warning if severity is Severity.WARNING else limit.info
        text = f"{worst.name}{others}: {worst.counter} is {least}{value:.0f} since the last reset ({limit.meaning})"
    evidence = (
        Measure("growth" if grown else worst.counter, value, "", factor * (bound or 0.0)),
        Measure("ports", len(same), ""),
        Measure("growing", grown),
    )
    return _finding(run, worst, severity, text, *evidence)


def _states(run: RunView, seen: list[Counter], slow_rate: float) -> Iterator[Finding]:
    off = {c.name for c in seen if c.counter == "disabled"}
    up = {c.name for c in seen if c.counter == "active" and c.last > 0}
    for c in seen:
        if c.counter == "active" and c.last == 0 and c.name not in off:
            text = f"{c.name} is not active"
            yield _finding(run, c, Severity.WARNING if up else Severity.INFO, text, Measure("active", 0, "", 1.0))
    rates = [c for c in seen if c.counter == "rate" and c.name in up and c.last > 0]
    fastest = max((c.last for c in rates), default=0.0)
    for c in rates:
        if c.last < slow_rate * fastest:
            text = f"{c.name} runs at {c.last:g} Gb/s where another port runs at {fastest:g} Gb/s"
            yield _finding(run, c, Severity.INFO, text, Measure("rate", c.last, "Gb/s", fastest))


def _priorities(run: RunView, seen: list[Counter]) -> Iterator[Finding]:
    values = {c.counter: c for c in seen}
    plain, lossless = values.get("rx_prio0_bytes"), values.get("rx_prio3_bytes")
    if plain is not None and lossless is not None and plain.last > 1e9 and lossless.last == 0:
        text = "all traffic is on priority 0 and none on priority 3: the lossless class (DSCP, PFC) is not applied"
        yield _finding(run, plain, Severity.WARNING, text, Measure("rx_prio3_bytes", 0, "B"))
    paused = [c for c in seen if c.counter.endswith("_pause") and "prio" in c.counter and c.last > 0]
    if paused:
        total = sum(c.last for c in paused)
        more = f" and {len(paused) - 1} more" if len(paused) > 1 else ""
        text = f"flow control paused traffic {total:,.0f} times since the last reset ({paused[0].counter}{more})"
        yield _finding(run, paused[0], Severity.INFO, text, Measure("pauses", total, ""))


def _finding(run: RunView, seen: Counter, severity: Severity, text: str, *evidence: Measure) -> Finding:
    where = run.where({"source": seen.source, "line": seen.line}, host=seen.host)
    return Finding(CODE, NAME, severity, text, where, evidence)
