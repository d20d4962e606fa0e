"""Explains: findings that belong together become incidents with ranked causes, costs and actions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from gdiag.model import Cost, Finding, Incident, Pattern, Severity
from gdiag.triage.actions import advise, deciding
from gdiag.triage.case import Case
from gdiag.triage.causes import rank
from gdiag.triage.facts import RunFacts
from gdiag.triage.grouping import group
from gdiag.triage.incidents import case_of
from gdiag.triage.notes import note
from gdiag.triage.state import saved_before_end
from gdiag.triage.titles import title


def explain(findings: Sequence[Finding], facts: Mapping[str, RunFacts]) -> tuple[Incident, ...]:
    """Incidents of all runs, by severity then onset, the log's own quality after what happened; Incident.findings index into `findings` as given."""
    index = {id(finding): number for number, finding in enumerate(findings)}
    incidents = [_incident(case, tuple(index[id(f)] for f in case.findings)) for case in cases(findings, facts)]
    incidents.sort(key=_gravest_first)
    return tuple(replace(incident, related=_related(n, incidents, facts)) for n, incident in enumerate(incidents))


def together(parts: Sequence[tuple[Sequence[int], Sequence[Incident]]]) -> tuple[Incident, ...]:
    """The incidents of runs that were explained one by one, as explain gives them for all.

    Args:
        parts: per run the places of its findings among those of all, and its incidents.
    """
    every = [(part, n, incident) for part, (_, own) in enumerate(parts) for n, incident in enumerate(own)]
    every.sort(key=lambda one: _gravest_first(one[2]))
    place = {(part, n): number for number, (part, n, _) in enumerate(every)}
    return tuple(
        replace(
            incident,
            findings=tuple(parts[part][0][f] for f in incident.findings),
            related=tuple(sorted(place[part, other] for other in incident.related)),
        )
        for part, _, incident in every
    )


def _gravest_first(incident: Incident) -> tuple[object, ...]:
    onset = incident.onset_step if incident.onset_step is not None else -1
    return (-incident.severity, incident.pattern == "log_quality", incident.run, onset, incident.onset_time or 0.0)


def cases(findings: Sequence[Finding], facts: Mapping[str, RunFacts]) -> list[Case]:
    """The incidents' evidence before it is weighed: findings grouped, named and placed, run by run."""
    found = []
    for run in dict.fromkeys(f.where.run or "" for f in findings):
        own = tuple(f for f in findings if (f.where.run or "") == run)
        figures = facts.get(run, RunFacts(run))
        for members in group(own, figures):
            ids = {id(f) for f in members}
            found.append(case_of(members, tuple(f for f in own if id(f) not in ids), figures))
    return found


def _incident(case: Case, findings: tuple[int, ...]) -> Incident:
    causes = rank(case)
    noted = case.severity is Severity.INFO and note(case) is not None
    if noted and (case.lead.code == "GD008" or all(cause.basis == "prior" for cause in causes)):
        causes = ()  # what is noted, or done by hand, without evidence of a cause asks for none
    times = [f.where for f in case.findings if f.where.time is not None]
    first = case.onset is not None and case.lead.where.step is not None and case.onset < case.lead.where.step
    dated = [t.time for t in times if t.time is not None and (not first or t.step == case.onset)]
    began = (None if first and dated else case.lead.where.time) or min(dated, default=None)
    return Incident(
        title=title(case), pattern=case.pattern, severity=case.severity, run=case.facts.run, onset_step=case.onset,
        last_step=case.last, onset_time=began, last_time=_ended(case, began),
        zone_known=all(t.zone_known for t in times), layer=case.layer, rank=case.rank, host=case.host, gpu=case.gpu,
        data=case.data, cost=_cost(case), findings=findings, causes=causes,
        actions=(*advise(case, causes), *deciding(causes)),
    )  # fmt: skip


def _ended(case: Case, began: float | None) -> float | None:
    """The last moment that a finding names, else that of the last step by the run's own clock."""
    named = [f.where.last_time or f.where.time for f in case.findings]
    last = max((t for t in named if t is not None), default=None)
    dated = any(f.where.last_time is not None or f.measure("taken_back") is True for f in case.findings)
    own = case.facts.times.get(case.last) if case.last is not None and not dated else None
    return own if own is not None and began is not None and own >= (last or began) else last


POINTS: Final = frozenset({"GD115", "GD117", "GD302", "GD306"})
"""Findings about one row, whose consequences have findings of their own."""
FREE: Final[frozenset[Pattern]] = frozenset({"log_quality", "memory_growth", "parameter_growth", "scale_mismatch"})
"""Patterns of runs that train on meanwhile: their steps are not lost."""
TIMED: Final = ("GD5", "GD6")
"""Beginnings of codes whose cost is the time that steps take longer, and no step."""


def _cost(case: Case) -> Cost:
    """Steps until recovered (else until the last step concerned), the time they took, and GPU-hours for known ranks.

    A run that ended costs the steps since its last checkpoint, which are trained again, and the time that its ranks waited.

    What is only worth knowing costs nothing, unless its finding says what it took; neither does what only changes numbers
    (a step counter, a schedule) or a gap in the log.
    """
    lost = case.number("seconds_lost", case.lead.code) or case.number("seconds_lost")
    trained = case.pattern in FREE or case.value("training_finite", case.lead.code) is True
    unknown = lost is None and (case.severity is Severity.INFO or case.lead.code.startswith(TIMED))
    if case.onset is None or unknown or trained or case.lead.code in POINTS:
        return Cost()
    if case.lead.code in {"GD008", "GD009"}:
        return _of_the_end(case)
    # A run that learns no more after a spike does not cost the spike alone.
    back = case.lead.number("regained_step") or (case.number("recovery_step") if case.lead.code != "GD307" else None)
    end = back if back is not None else None if case.last is None else case.last + 1
    steps = max(1, int(end - case.onset) - case.facts.unlogged(case.onset, end)) if end is not None else None
    slow = case.number("slow_steps", case.lead.code) or case.number("hits", "GD503")
    if slow is not None:
        steps = int(slow)  # The steps between them cost nothing.
    seconds = lost
    if lost is None and steps is not None and case.facts.step_seconds is not None:
        seconds = steps * case.facts.step_seconds
    return _priced(case, steps, seconds)


def _of_the_end(case: Case) -> Cost:
    saved, waited = saved_before_end(case), case.number("waited", "GD009")
    steps = case.onset - saved or None if case.onset is not None and saved is not None else None
    trained = steps * case.facts.step_seconds if steps is not None and case.facts.step_seconds is not None else None
    spent = [seconds for seconds in (trained, waited) if seconds is not None]
    return _priced(case, steps, sum(spent) if spent else None)


def _priced(case: Case, steps: int | None, seconds: float | None) -> Cost:
    """With the GPU-hours where the number of ranks is known."""
    hours = seconds * case.facts.ranks / 3600 if seconds is not None and case.facts.ranks else None
    return Cost(
        steps, round(seconds, 1) if seconds is not None else None, round(hours, 3) if hours is not None else None
    )


def _related(number: int, incidents: list[Incident], facts: Mapping[str, RunFacts]) -> tuple[int, ...]:
    """Other incidents of the run that begin within a few rows of this one: neighbours in time, not proven consequences."""
    me = incidents[number]
    if me.onset_step is None:
        return ()
    reach = 20 * facts.get(me.run, RunFacts(me.run)).interval
    return tuple(
        other for other, incident in enumerate(incidents)
        if other != number and incident.run == me.run and incident.onset_step is not None
        and incident.pattern != "log_quality" and abs(incident.onset_step - me.onset_step) <= reach
    )  # fmt: skip
