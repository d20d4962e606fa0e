"""Holds a report against a case's truth: which incident is which event, what is false, what is missing.

An event and an incident belong together where the onsets lie within max(8 steps, 1.5 % of the run, two log intervals), for
slow events within 15 % of the run, for events that span the run anywhere with a right pattern; the nearest onset wins,
then the higher severity. Below warning an incident counts only for harmless events.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from gdiag.model import Incident, Report, Severity
from gdiag.simulate.truth import Event, Truth

VISIBLE = 8.0
"""Excess over the noise, in standard deviations, from which a sudden event can be asked for."""


@dataclass(frozen=True, slots=True)
class Match:
    """An event and the incident that tells of it, None where none does."""

    event: Event
    incident: Incident | None
    error: float
    """Distance of the onsets [step], NaN without an incident."""

    @property
    def visible(self) -> bool:
        """Whether the log holds enough of it to ask for."""
        return self.event.strength is None or self.event.strength >= VISIBLE

    @property
    def patterned(self) -> bool:
        """Whether the incident has a right pattern."""
        return self.incident is not None and self.incident.pattern in self.event.patterns

    @property
    def causes(self) -> tuple[str, ...]:
        """The causes named, best first."""
        return tuple(cause.cause for cause in self.incident.causes) if self.incident is not None else ()

    @property
    def caused(self) -> bool:
        """Whether an accepted cause is named first."""
        return bool(self.causes) and self.causes[0] in self.event.accept

    @property
    def located(self) -> bool | None:
        """Whether layer, rank and GPU are right; None where the event has none."""
        event, found = self.event, self.incident
        if event.layer is None and event.rank is None and event.gpu is None:
            return None
        if found is None:
            return False
        right = event.layer is None or f"{found.layer or ''}.".startswith(f"{event.layer}.")
        right &= event.rank is None or found.rank == event.rank
        return right and (event.gpu is None or found.gpu == event.gpu["index"])


@dataclass(frozen=True, slots=True)
class Judged:
    """One case, held against its truth."""

    truth: Truth
    matches: tuple[Match, ...]
    incidents: tuple[Incident, ...]
    """All that was reported."""
    false: tuple[Incident, ...]
    """Incidents of warning and above that match no event; two are forgiven where an event tolerates more."""


def judge(report: Report, truth: Truth) -> Judged:
    """Match a report's incidents with a truth's events."""
    taken: list[int] = []
    matches: list[Match] = []
    for event in sorted(truth.events, key=lambda e: e.whole_run):
        free = [k for k, incident in enumerate(report.incidents) if k not in taken and _near(event, incident, truth)]
        best = min(
            free, key=lambda k: (_distance(event, report.incidents[k]), -report.incidents[k].severity, k), default=None
        )
        if best is None:
            matches.append(Match(event, None, math.nan))
        else:
            taken.append(best)
            matches.append(Match(event, report.incidents[best], _distance(event, report.incidents[best])))
    spare = [
        incident
        for k, incident in enumerate(report.incidents)
        if k not in taken and incident.severity >= Severity.WARNING and incident.pattern not in truth.tolerated
    ]
    forgiven = 2 if any(event.tolerates_more and not event.benign for event in truth.events) else 0
    asked = tuple(m for m in matches if not m.event.benign)
    return Judged(truth, asked, report.incidents, tuple(spare[forgiven:]))


def _near(event: Event, incident: Incident, truth: Truth) -> bool:
    if incident.severity < Severity.WARNING and not event.benign:
        return False
    if event.whole_run:
        return incident.pattern in event.patterns
    if incident.onset_step is None:
        return False
    slack = 0.15 * truth.steps if event.slow else max(8.0, 0.015 * truth.steps, 2.0 * truth.every)
    last = incident.last_step if incident.last_step is not None else incident.onset_step
    short = last - incident.onset_step <= 0.2 * truth.steps
    inside = incident.onset_step <= event.onset <= last and short and incident.pattern in event.patterns
    return inside or abs(incident.onset_step - event.onset) <= slack


def _distance(event: Event, incident: Incident) -> float:
    return math.inf if incident.onset_step is None else float(abs(incident.onset_step - event.onset))
