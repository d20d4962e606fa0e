"""A network port counts errors, is congested or down, or runs slower than its peers.

What it checks
    Error counters and bit error rates against thresholds with their source (`gdiag/reference/port_counters.tsv`): one reading
    says only that it happened since the last reset (a saturated counter is "at least"), two readings say what grows, and
    with a clock beside them when. What grows is held against the run's slow steps at the same time: from eight intervals
    between readings on with the number that chance would give, below that as a coincidence of two windows. Waits for
    credit as a share of the time. Port state, and rate against ports of the same kind (adapter type; kinds of nodes at both
    ends where ibnetdiscover tells them), else of the same host. All RoCE traffic on
    priority 0 and none on the lossless one.

Why it matters
    A link that retrains or drops stalls every collective that crosses it; discards cost retransmissions; a missing
    priority means that flow control never protects training traffic.

What to do
    Errors that grow: clean or replace the cable or transceiver, then the card; check both ends. Discards and waits:
    congestion, look at routing and ECN/PFC. Clear the counters, or take readings around a job with `date` and the host's
    name above them, to date them.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gdiag.measures.ports import Counter, Match, allowed, cables, counters, judge, match
from gdiag.measures.run import RunView
from gdiag.measures.segments import Ints
from gdiag.model import Finding, Measure, Severity
from gdiag.reference.port_counters import thresholds

CODE = "GD706"
NAME = "port-errors"
NEEDS: tuple[str, ...] = ("ports.value",)
_ALIKE = 4
"""Ports of one kind from which on the usual rate is known; up to one in so many may be slow, more are another kind."""


def analyze(
    run: RunView, *, factor: float = 1.0, slow_rate: float = 0.9, wait: float = 0.05, p: float = 0.05
) -> list[Finding]:
    """factor: multiplies every threshold. slow_rate: share of the fastest port's rate below which a port is slow.

    wait: share of the time without credit that is a warning, a fifth of it a note. p: growth meets slow steps more often
    than chance from this probability on.
    """
    seen = list(counters(run.ports))
    alike: dict[tuple[str, Severity, bool], list[Counter]] = {}
    for c in seen:
        limit = thresholds().get(c.counter)
        judged = judge(c, limit, factor) if limit is not None else None
        if judged is not None:
            alike.setdefault((c.counter, *judged), []).append(c)
    slow = run.slow_rows
    found = [_errors(run, same, *key[1:], factor, slow, p) for key, same in alike.items()]
    return [*found, *_waits(run, seen, wait, slow, p), *_states(run, seen, slow_rate), *_priorities(run, seen)]


def _errors(
    run: RunView, same: list[Counter], severity: Severity, grown: bool, factor: float, slow: Ints, p: float
) -> Finding:
    """Ports with the same counter at the same severity are one finding, named by the worst."""
    worst = max(same, key=lambda c: (c.growth or 0.0) if grown else c.last)
    limit = thresholds()[worst.counter]
    others = f" and {len(same) - 1} more port{'s' if len(same) > 2 else ''}" if len(same) > 1 else ""
    least = "at least " if worst.saturated else ""
    known = cables(run.facts)
    ends = known.get(worst.name) or known.get(worst.name.partition(" port ")[0])
    cable = f" ({ends})" if ends else ""
    met = _met(run, worst, slow) if grown else None
    if grown:
        value, bound = worst.growth or 0.0, allowed(worst, limit)
        readings = "two readings" if len(worst.intervals) == 1 else f"{len(worst.intervals) + 1} readings"
        text = f"{worst.name}{cable}{others}: {worst.counter} grew by {least}{value:.0f} between {readings} ({limit.meaning})"
        text += _words(met, p)
    else:
        value, bound = worst.last, limit.warning if severity is Severity.WARNING else limit.info
        figure = f"{value:.3g}" if worst.counter.endswith("_ber") else f"{value:.0f} since the last reset"
        text = f"{worst.name}{cable}{others}: {worst.counter} is {least}{figure} ({limit.meaning})"
    evidence = (
        Measure("growth" if grown else worst.counter, value, "", factor * (bound or 0.0)),
        Measure("ports", len(same), ""),
        Measure("growing", grown),
        Measure("kind", limit.kind),
        Measure("port", f"{worst.name}{cable}"),
        *_coincidence(met, p),
    )
    return _finding(run, worst, severity, text, *evidence)


def _met(run: RunView, seen: Counter, slow: Ints) -> Match | None:
    return match(seen, run.step_times.times, slow) if run.step_times is not None and len(slow) else None


def _words(met: Match | None, p: float) -> str:
    if met is None or not met.slow:
        return ""
    inside = f", with {met.inside} of {met.slow} slow steps inside"
    if met.p is None or met.chance is None:
        return f"{inside}: only the window matches, {met.intervals} intervals date nothing within it"
    verdict = "more often than" if met.p <= p else "no more often than"
    return f"{inside}, {verdict} the {met.chance:.1f} of chance (p = {met.p:.2g})"


def _coincidence(met: Match | None, p: float) -> tuple[Measure, ...]:
    if met is None:
        return ()
    told = [Measure("slow_inside", met.inside), Measure("slow_steps", met.slow), Measure("intervals", met.intervals)]
    if met.p is not None and met.chance is not None:
        told += [Measure("chance", round(met.chance, 2)), Measure("p", round(met.p, 4), "", p)]
    return (*told, Measure("meets_slow_steps", met.inside > 0 and (met.p is None or met.p <= p)))


def _waits(run: RunView, seen: list[Counter], limit: float, slow: Ints, p: float) -> Iterator[Finding]:
    """Time without credit: ticks waited over ticks waited and words sent, both of 32 bits at the link's rate."""
    sent = {(c.name, c.host): c for c in seen if c.counter == "port_xmit_data" and not c.saturated}
    for c in seen:
        data = sent.get((c.name, c.host))
        if c.counter != "port_xmit_wait" or data is None or not c.growth or not data.growth:
            continue
        share = c.growth / (c.growth + data.growth)
        if share < limit / 5:
            continue
        met = _met(run, c, slow)
        severity = Severity.WARNING if share >= limit else Severity.INFO
        text = f"{c.name} waits for credit in {share:.0%} of its sending time between two readings{_words(met, p)}"
        evidence = (
            Measure("wait_share", round(share, 4), "", limit),
            Measure("growing", True),
            Measure("kind", "congestion"),
            Measure("port", c.name),
        )
        yield _finding(run, c, severity, text, *evidence, *_coincidence(met, p))


def _states(run: RunView, seen: list[Counter], slow_rate: float) -> Iterator[Finding]:
    off = {c.name for c in seen if c.counter == "disabled"}
    up = {c.name for c in seen if c.counter == "active" and c.last > 0}
    for c in seen:
        if c.counter == "active" and c.last == 0 and c.name not in off:
            text = f"{c.name} is not active"
            evidence = (Measure("active", 0, "", 1.0), Measure("port", c.name))
            yield _finding(run, c, Severity.WARNING if up else Severity.INFO, text, *evidence)
    rates = [c for c in seen if c.counter == "rate" and c.name in up and c.last > 0]
    yield from _slow_alike(run, rates, slow_rate)
    unsettled = [c for c in seen if c.counter == "unsettled"]
    if unsettled:
        some = ", ".join(c.name for c in unsettled[:4]) + (
            f" and {len(unsettled) - 4} more" if len(unsettled) > 4 else ""
        )
        text = f"{some}: neither speed nor other end is known: the link is down or in training"
        yield _finding(
            run,
            unsettled[0],
            Severity.INFO,
            text,
            Measure("ports", len(unsettled), "", 0.0),
            Measure("active", 0, "", 1.0),
        )
    # What nobody says the kind of is held against the ports of its own host.
    unsaid: dict[tuple[str | None, int | None], list[Counter]] = {}
    for c in rates:
        if c.kind is None:
            unsaid.setdefault((c.host, None if c.host else c.source), []).append(c)
    for own in unsaid.values():
        fastest = max(c.last for c in own)
        for c in own:
            if c.last < slow_rate * fastest:
                text = f"{c.name} runs at {c.last:g} Gb/s where another port runs at {fastest:g} Gb/s"
                yield _finding(run, c, Severity.INFO, text, Measure("rate", c.last, "Gb/s", fastest))


def _slow_alike(run: RunView, rates: list[Counter], slow_rate: float) -> Iterator[Finding]:
    """Few ports that are slower than most of their kind; where many are, the fleet is mixed."""
    kinds: dict[str, list[Counter]] = {}
    for c in rates:
        if c.kind is not None:
            kinds.setdefault(c.kind, []).append(c)
    for kind, alike in kinds.items():
        usual = float(np.median([c.last for c in alike]))
        slow = [c for c in alike if c.last < slow_rate * usual]
        if len(alike) < _ALIKE or not slow or len(slow) > len(alike) / _ALIKE:
            continue
        worst = min(slow, key=lambda c: c.last)
        end = f" (to {worst.peer})" if worst.peer else ""
        more = f" and {len(slow) - 1} more" if len(slow) > 1 else ""
        text = (
            f"{worst.name}{end}{more}: {worst.last:g} Gb/s where {len(alike) - len(slow)} ports like it ({kind}) run at "
            f"{usual:g} Gb/s"
        )
        evidence = (
            Measure("rate", worst.last, "Gb/s", usual),
            Measure("ports", len(slow)),
            Measure("port", worst.name),
        )
        yield _finding(run, worst, Severity.WARNING, text, *evidence)


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
    start, end = seen.span or (None, None)
    where = run.where({"source": seen.source, "line": seen.line}, host=seen.host, time=start, last_time=end)
    return Finding(CODE, NAME, severity, text, where, evidence)
