"""A group of findings as one incident: what it is called, where it lies and how long it lasts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from gdiag.model import DataWindow, Finding, Pattern, Severity
from gdiag.triage.case import Case, other_weights
from gdiag.triage.codes import (
    ALONE,
    BLUNT,
    FOLLOWS,
    HINTS,
    LASTING,
    LAYER_WITNESSES,
    LEADS,
    LEARNING,
    PATTERN,
    SHARP,
    SPIKES,
    STRETCHES,
    TAKEN_UP,
)
from gdiag.triage.facts import RunFacts
from gdiag.triage.grouping import dies, ended_learning, room_of, surge
from gdiag.triage.kin import end_of

T = TypeVar("T")


def case_of(members: list[Finding], others: tuple[Finding, ...], facts: RunFacts) -> Case:
    """Name and place an event."""
    named = [f for f in members if f.code in PATTERN]
    known = any(f.code in TAKEN_UP and f.severity > Severity.INFO for f in named) or _of_one_rank(named, facts)
    after = (FOLLOWS if known else frozenset()) | (LEARNING | SPIKES if ended_learning(named) else frozenset())
    lead = min((f for f in named if f.code not in after), key=_precedence)
    spread = frozenset() if lead.code in LEARNING or ended_learning(named) else LEARNING
    events = [f for f in members if f is lead or surge(f) or dies(f) or f.code not in ALONE | spread | {"GD008"}]
    alarms = [f for f in events if f.severity >= min(lead.severity, Severity.WARNING)] or events
    if lead.code not in HINTS:  # what is said of the whole run dates nothing that has an onset of its own
        alarms = [f for f in alarms if f is lead or f.measure("from_start") is not True]
    if lead.measure("slow") is True:
        alarms = [f for f in alarms if f.code in SHARP] or alarms
    else:
        alarms = [f for f in alarms if f.measure("slow") is not True]
    alarms = [f for f in alarms if f.code not in BLUNT] or alarms
    if lead.code in TAKEN_UP:
        alarms = [f for f in alarms if f.code not in FOLLOWS] or alarms
    alarms = [lead] if lead.code == "GD106" else alarms  # the rows date what was joined to them
    # The loss is flat from about some block on; where the rate was gone is known to the row.
    alarms = [f for f in alarms if f.code == "GD303"] or alarms
    steps = [f.where.step for f in alarms if f.where.step is not None]
    lasts = [end_of(f) for f in alarms]
    return Case(
        pattern=_pattern(lead), lead=lead, findings=tuple(members), others=others, facts=facts,
        onset=min(steps, default=None), last=_last(lead, max((s for s in lasts if s is not None), default=None), facts),
        layer=_layer(members, lead), rank=_first([lead.where.rank, *(f.where.rank for f in members)]),
        host=_first([lead.where.host, *(f.where.host for f in members)]),
        gpu=_first([lead.where.gpu, *(f.where.gpu for f in members)]), data=_window(members, min(steps, default=None), _pattern(lead), facts),
    )  # fmt: skip


def _of_one_rank(named: list[Finding], facts: RunFacts) -> bool:
    """Whether the gradients grow from where one rank's leave the others': the sum over ranks shows it as well."""
    grown = [f.where.step for f in named if f.code in FOLLOWS and f.where.step is not None]
    left = [
        f.where.step for f in named if f.code == "GD402" and f.severity > Severity.INFO and f.where.step is not None
    ]
    return bool(grown and left) and min(left) <= min(grown) + 2 * facts.interval


def _pattern(lead: Finding) -> Pattern:
    if lead.measure("kind") == "crash_loop":
        return "abnormal_exit"
    if lead.code == "GD109" and lead.severity is Severity.INFO and lead.measure("kind") == "fresh_model":
        return "log_quality"  # where the log begins, and nothing says that the run had begun before
    if lead.code == "GD309" and lead.severity is Severity.INFO:
        return "log_quality"  # the optimizer took another rate than the one logged
    return "gradient_explosion" if surge(lead) else PATTERN[lead.code]


def _last(lead: Finding, last: int | None, facts: RunFacts) -> int | None:
    """Last step of an incident: until the level of before is regained, or the end of the log where it never is."""
    aside = lead.measure("taken_back") is True or lead.measure("other_writer") is True
    if lead.code not in LASTING or lead.measure("recovered") is not False or aside or last is None:
        return last
    regained = lead.number("regained_step")
    if regained is not None:
        return int(regained) - 1
    return last if facts.last_step is None else max(last, facts.last_step)


def _precedence(finding: Finding) -> tuple[object, ...]:
    hint = finding.code in HINTS
    code = "GD105" if other_weights(finding) else finding.code
    place = float(LEADS.index(code) if code in LEADS else len(LEADS))
    place += 0.5 * (code != finding.code)  # behind the loss, which shows what other weights did
    place -= finding.measure("culprit_rank") is not None  # whom the others wait for says more than who gave up
    place -= 0.5 * (finding.code == "GD009" and bool(finding.number("timeouts")))  # and so does who waits
    place -= 2 * (finding.measure("first_error") is True)  # what came first, more than who waited after it
    place += 0.5 * (finding.measure("follows") is not None)
    grave = min(finding.severity, Severity.WARNING) if hint else finding.severity
    return (hint or finding.severity == Severity.INFO, -grave, place, finding.where.step or 0)


def _layer(members: list[Finding], lead: Finding) -> str | None:
    if lead.where.layer:
        return lead.where.layer
    for code in LAYER_WITNESSES:
        for finding in members:
            if finding.code == code and finding.where.layer:
                return _narrowed(finding.where.layer, members)
    return None


def _narrowed(layer: str, members: list[Finding]) -> str:
    """The part of a block that moved first, where one of the findings names it."""
    parts = [f.where.layer for f in members if f.code in {"GD205", "GD206"} and f.where.layer]
    return next((part for part in parts if part.startswith(f"{layer}.")), layer)


def _first(values: Sequence[T | None]) -> T | None:
    return next((value for value in values if value is not None), None)


def _window(members: list[Finding], onset: int | None, pattern: Pattern, facts: RunFacts) -> DataWindow | None:
    """The samples that a finding names, else those of the onset's step where ids are logged; none where the rate did it all."""
    if ended_learning(members):
        return None
    for finding in members:
        first, last = finding.number("sample_start"), finding.number("sample_end")
        if first is not None and last is not None:
            return DataWindow(int(first), int(last))
    if onset is None or pattern in STRETCHES or all(room_of(f) != "model" for f in members):
        return None
    return facts.windows.get(onset)
