"""Findings that follow from the same event become one group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from gdiag.model import Finding, Severity
from gdiag.triage.codes import (
    ALONE,
    BROAD,
    HARDWARE,
    LEADS,
    LEARNING,
    NUMBERS,
    PATTERN,
    RATED,
    RESTARTS,
    ROOM,
    SLOWED,
    STATE,
    UNSTEADY,
    UNTIMED,
)
from gdiag.triage.facts import RunFacts
from gdiag.triage.kin import end_of, followed, same_rhythm

NEAR_ROWS: Final = 10
"""Logged rows within which two findings of one room count as one event: the spike scan merges hot rows over the same gap."""


HARDWARE_ROWS: Final = 30
"""The same for the machine's own reports: counters are polled every few seconds to minutes, not every step."""


@dataclass(slots=True)
class Group:
    """Findings believed to follow from one event, while they are collected."""

    room: str
    members: list[Finding] = field(default_factory=list)

    @property
    def codes(self) -> set[str]:
        """Codes of the members."""
        return {f.code for f in self.members}

    @property
    def start(self) -> float:
        """First step of any member."""
        return min((f.where.step for f in self.members if f.where.step is not None), default=float("-inf"))

    def end(self, *, restarts: bool = False) -> float:
        """Last step that the event explains; infinite once the model's state is in question.

        A restart (`restarts`) is no consequence of what grows over much of the run, however grave that is.
        """
        alarms = [
            f for f in self.members if f.code in STATE and f.severity > Severity.INFO and not f.measure("isolated")
        ]
        if alarms:
            return float("inf")
        return max(
            (
                # A layer that died stays dead: what comes long after is no part of its death.
                (f.where.step if dies(f) else end_of(f)) or 0
                for f in self.members
                if f.code not in BROAD or (f.severity > Severity.INFO and not restarts)
            ),
            default=self.start,
        )


def group(findings: tuple[Finding, ...], facts: RunFacts) -> list[list[Finding]]:
    """Split one run's findings into events; evidence-only findings join an event or stay out.

    Findings are taken by onset; each joins the first event of its room that is still going on or ended a few rows
    before, else it starts its own.
    """
    groups: list[Group] = []
    named = [f for f in findings if f.code in PATTERN]
    for finding in sorted(named, key=_by_onset):
        home = _home(finding, groups, facts)
        if home is None:
            home = Group(room_of(finding))
            groups.append(home)
        home.members.append(finding)
    _absorb_learning(groups)
    _absorb_exit(groups, facts)
    _absorb_rows(groups)
    _absorb_validation(groups)
    for finding in findings:
        if finding.code not in PATTERN:
            rated = [g for g in groups if g.codes & RATED] if finding.code == "GD301" else groups
            home = _home(finding, rated, facts)
            if home is not None:
                home.members.append(finding)
    return [[f for f in findings if f in g.members] for g in groups]


def room_of(finding: Finding) -> str:
    if finding.code in HARDWARE:
        return "model"
    if finding.code == "GD707":
        return "time"
    return ROOM[finding.code[:3]]


def _by_onset(finding: Finding) -> tuple[float, float, bool, int]:
    where = finding.where
    step = float(where.step) if where.step is not None else float("inf")
    follows = finding.measure("follows") is not None
    return (step, where.time or 0.0, follows, LEADS.index(finding.code) if finding.code in LEADS else len(LEADS))


def _home(finding: Finding, groups: list[Group], facts: RunFacts) -> Group | None:
    if finding.code == "GD207":
        same_layer = (
            g for g in groups if any(f.code == "GD211" and f.where.layer == finding.where.layer for f in g.members)
        )
        return next(same_layer, None)
    if finding.measure("follows") is not None:
        return next((g for g in groups if any(followed(finding, f) for f in g.members)), None)
    if finding.code == "GD503":
        return next((g for g in groups if any(same_rhythm(finding, f) for f in g.members)), None)
    if _alone(finding):
        return None
    if finding.measure("meets_slow_steps") is True:
        slow = (g for g in groups if g.room == "time" or "GD009" in g.codes)
        return next((g for g in slow if _overlaps_in_time(finding, g)), None)
    room = room_of(finding) if finding.code in PATTERN or finding.code.startswith(("GD5", "GD6")) else "model"
    same = [g for g in groups if g.room == room and not all(_alone(f) for f in g.members)]
    if finding.code in LEARNING:
        return next((g for g in same if g.codes & LEARNING), None)
    step = finding.where.step
    for home in same:
        if home.codes <= LEARNING:
            continue
        if step is None and (_overlaps_in_time(finding, home) or _only_slowdown(finding, home, same)):
            return home
        rows = HARDWARE_ROWS if HARDWARE & {finding.code, *home.codes} else NEAR_ROWS
        if step is not None and _close(finding, step, home, rows, facts) and _compatible(finding, home):
            return home
    return None


def _close(finding: Finding, step: float, home: Group, rows: int, facts: RunFacts) -> bool:
    """Whether a step lies in an event or at most so many logged rows before or after it."""
    if step < home.start:
        return facts.apart(step, home.start) <= rows
    end = home.end(restarts=finding.code in RESTARTS)
    return step <= end or facts.apart(end, step) <= rows


def _alone(finding: Finding) -> bool:
    """Whether a finding is about a stretch or the log; a missing warm-up that ends badly and a surge of updates are events."""
    if finding.severity > Severity.INFO and (finding.code == "GD305" or dies(finding)):
        return False
    return finding.code in ALONE and not surge(finding)


def dies(finding: Finding) -> bool:
    """Whether GD203 tells of a layer that lived until then."""
    return finding.code == "GD203" and finding.measure("from_start") is False


def surge(finding: Finding) -> bool:
    """Whether GD209 tells of an update norm that rises at once, not of its level."""
    return finding.code == "GD209" and finding.measure("grad_lead") is not None


def _compatible(finding: Finding, home: Group) -> bool:
    """Two different ranks or GPUs at fault are two events, unless the machine's report explains the other."""
    for mine, theirs in (
        (finding.where.gpu, {f.where.gpu for f in home.members} - {None}),
        (finding.where.host, {f.where.host for f in home.members} - {None}),
    ):
        if mine is not None and theirs and mine not in theirs:
            return False
    return True


def _only_slowdown(finding: Finding, home: Group, same: list[Group]) -> bool:
    """A slow GPU without a time joins the run's one slow-down: nothing else is there that it could have caused."""
    slowed = [g for g in same if g.codes & SLOWED and max(f.severity for f in g.members) > Severity.INFO]
    return finding.where.time is None and finding.code in UNTIMED and slowed == [home] and _compatible(finding, home)


def _overlaps_in_time(finding: Finding, home: Group) -> bool:
    first, last = finding.where.time, finding.where.last_time or finding.where.time
    spans = [(f.where.time, f.where.last_time or f.where.time) for f in home.members if f.where.time is not None]
    if first is None or last is None or not _compatible(finding, home):
        return False
    return any(a is not None and b is not None and a <= last and first <= b for a, b in spans)


def _absorb_learning(groups: list[Group]) -> None:
    """A run that does not learn because it became unstable is one incident: the instability."""
    unstable = next((g for g in groups if g.room == "model" and g.end() == float("inf")), None)
    learning = next((g for g in groups if g.codes & LEARNING and g is not unstable), None)
    if unstable is None or learning is None:
        return
    others = {"GD303", "GD304"} if ended_learning(unstable.members) else {"GD202", "GD303", "GD304"}
    if learning.codes & others:
        return
    unstable.members += learning.members
    groups.remove(learning)


def ended_learning(members: Sequence[Finding]) -> bool:
    """Whether the run learned no more once its rate had carried the weights off, or shaken it near its peak: a loss that is
    flat and gradients that vanish after that are its consequence, not the network's depth."""
    return any(f.code == "GD307" and f.measure("kind") in {"weights", "stalled"} for f in members)


def _absorb_exit(groups: list[Group], facts: RunFacts) -> None:
    """A run that stops because its numbers are not finite, or a GPU is lost, is one incident: the numbers, or the GPU."""
    ended = next((g for g in groups if g.codes == {"GD008"}), None)
    if ended is None:
        return
    exit_ = ended.members[0]
    step = exit_.where.step
    lost = next((g for g in groups if "GD606" in g.codes), None)
    if lost is not None and exit_.measure("kind") == "gpu_lost":
        lost.members.append(exit_)
        groups.remove(ended)
        return
    for home in groups:
        if not home.codes & NUMBERS:
            continue
        soon = (
            step is not None
            and facts.apart(*sorted((step, home.start))) <= NEAR_ROWS
            and exit_.measure("kind") == "exit"
        )
        if soon or exit_.measure("numeric") is True:
            home.members.append(exit_)
            groups.remove(ended)
            return


def _absorb_rows(groups: list[Group]) -> None:
    """Gradients that jump in the rows of hard batches, all or of many layers, are those batches' and no incidents of their own."""
    home = next((g for g in groups if g.codes == {"GD106"}), None)
    if home is None:
        return
    rows = str(home.members[0].measure("steps")).split(", ")

    def of_batch(finding: Finding) -> bool:
        several = finding.code == "GD205" and finding.severity is Severity.INFO and finding.measure("alone") is False
        return (finding.code == "GD206" or several) and str(finding.where.step) in rows

    for other in [g for g in groups if g.room == "model" and g is not home and all(of_batch(f) for f in g.members)]:
        home.members += other.members
        groups.remove(other)
    around = next((g for g in groups if g is not home and g.room == "model" and _holds(g, rows)), None)
    if around is not None:
        around.members += home.members
        groups.remove(home)


def _holds(group: Group, rows: Sequence[str]) -> bool:
    """Whether an event that shows in the loss lasts over all of `rows`: what stands out meanwhile is its doing, no batch's."""
    alarms = [f for f in group.members if f.code in UNSTEADY and f.severity > Severity.INFO]
    steps = [int(row) for row in rows if row.lstrip("-").isdigit()]
    lasts = [last for f in group.members if (last := end_of(f)) is not None]
    return bool(alarms and steps and lasts) and group.start <= min(steps) and max(steps) <= max(lasts)


def _absorb_validation(groups: list[Group]) -> None:
    """Validation that is lost after the training loss was is no event of its own."""
    lost = next((g for g in groups if g.codes & {"GD101", "GD116"} and g.end() == float("inf")), None)
    own = next((g for g in groups if g.codes == {"GD111"}), None)
    if lost is None or own is None or own.members[0].measure("training_finite") is not False or own.start < lost.start:
        return
    lost.members += own.members
    groups.remove(own)
