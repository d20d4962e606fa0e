"""Findings that follow from the same event become one incident: grouping, naming and placing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

from gdiag.model import DataWindow, Finding, Pattern, Severity
from gdiag.triage.case import Case, other_weights
from gdiag.triage.facts import RunFacts

T = TypeVar("T")

PATTERN: Final[dict[str, Pattern]] = {
    "GD001": "log_quality", "GD002": "log_quality", "GD003": "log_quality", "GD004": "log_quality",
    "GD005": "log_quality", "GD006": "log_quality", "GD007": "log_quality", "GD008": "abnormal_exit", "GD009": "hang", "GD010": "log_quality", "GD011": "log_quality",
    "GD101": "nonfinite", "GD102": "single_spike", "GD103": "repeated_spikes", "GD104": "divergence",
    "GD105": "step_up", "GD106": "hard_batches", "GD107": "no_learning", "GD108": "plateau", "GD109": "resume_jump",
    "GD110": "eval_divergence", "GD111": "eval_divergence", "GD112": "skipped_steps", "GD113": "scale_mismatch",
    "GD115": "resume_jump", "GD116": "nonfinite", "GD117": "resume_jump", "GD118": "skipped_steps", "GD119": "eval_divergence", "GD120": "resume_jump",
    "GD201": "gradient_explosion", "GD202": "vanishing_gradient", "GD203": "dead_layer", "GD204": "nonfinite",
    "GD205": "layer_outlier", "GD206": "gradient_explosion", "GD207": "parameter_growth", "GD208": "parameter_jump",
    "GD209": "parameter_growth", "GD210": "layer_outlier", "GD211": "layer_outlier", "GD212": "scale_mismatch",
    "GD213": "gradient_explosion", "GD215": "parameter_growth",
    "GD302": "lr_discontinuity", "GD303": "plateau", "GD304": "no_learning", "GD305": "lr_schedule",
    "GD306": "lr_discontinuity", "GD307": "divergence", "GD308": "log_quality", "GD309": "lr_discontinuity",
    "GD401": "rank_mismatch", "GD402": "rank_outlier", "GD403": "ecc_error", "GD404": "gpu_error",
    "GD501": "step_time_shift", "GD502": "step_time_drift", "GD503": "periodic_slow_steps", "GD504": "slow_steps",
    "GD505": "straggler", "GD506": "memory_growth",
    "GD601": "thermal_slowdown", "GD602": "power_limit", "GD603": "power_brake", "GD604": "clock_outlier",
    "GD605": "thermal_slowdown", "GD606": "gpu_error",
    "GD701": "wrong_results", "GD702": "low_bandwidth", "GD703": "bandwidth_collapse", "GD704": "latency_jitter",
    "GD705": "inconsistent_output", "GD706": "port_errors", "GD707": "slow_collective",
    "GD708": "low_bandwidth", "GD709": "low_bandwidth", "GD710": "port_errors",
    "GD711": "port_errors", "GD712": "port_errors", "GD713": "port_errors",
}  # fmt: skip
"""The pattern a finding gives an incident that it leads; codes that are absent are evidence only."""

LEADS: Final = (
    "GD403", "GD404", "GD606", "GD401", "GD402", "GD101", "GD116", "GD204", "GD208", "GD202", "GD203", "GD109",
    "GD115", "GD120", "GD118", "GD112", "GD117", "GD302", "GD309", "GD306", "GD104", "GD103", "GD105", "GD102", "GD307", "GD201", "GD303", "GD304",
    "GD107", "GD108", "GD110", "GD111", "GD106", "GD213", "GD205", "GD206", "GD210", "GD211", "GD113", "GD207", "GD215", "GD601",
    "GD603", "GD602", "GD505", "GD504", "GD501", "GD502", "GD707", "GD604", "GD506", "GD503", "GD701",
)  # fmt: skip
"""Among findings of equal severity the first of these names the incident: proof before shape, shape before hint."""

STATE: Final = frozenset({"GD101", "GD103", "GD104", "GD307", "GD116"})
"""Findings after which the model's state is in question: what follows in the loss or gradients is a consequence."""

LEARNING: Final = frozenset({"GD107", "GD108", "GD202", "GD303", "GD304"})
"""Findings that say together that the run does not learn; they form one incident."""

ALONE: Final = frozenset({"GD001", "GD002", "GD003", "GD004", "GD005", "GD006", "GD007", "GD010", "GD011", "GD106", "GD110", "GD111", "GD113", "GD119",
                          "GD203", "GD207", "GD209", "GD212", "GD305", "GD308", "GD503", "GD506", "GD605"})  # fmt: skip
"""Findings about a stretch of the run or about the log itself: never joined to an event by time alone."""

SHARP: Final = frozenset(
    {"GD101", "GD102", "GD109", "GD117", "GD118", "GD120", "GD208", "GD215", "GD302", "GD306", "GD309"}
)
"""Findings dated to the row: they date a slow rise, whose own onset is only known to a few blocks of rows."""

BLUNT: Final = frozenset({"GD213"})
"""Findings dated to a quarter of the run: they date only what nothing else does."""

FOLLOWS: Final = frozenset({"GD201"})
"""Gradients that grow with what a resume or a jump of the rate did: they are its consequence, however grave, and dated by it
where they seem to begin a few rows before."""
TAKEN_UP: Final = frozenset({"GD109", "GD302", "GD306"})
"""Findings about a row that is known beforehand: where training was taken up again, or the rate set."""

NUMBERS: Final = frozenset({"GD101", "GD112", "GD116", "GD204"})
"""Findings about numbers that are not finite, or about the loss scale that keeps them so: programs stop over them."""

HINTS: Final = frozenset({"GD205", "GD206", "GD207", "GD209", "GD210", "GD211", "GD213", "GD215"})
"""Findings that explain more than they describe: they lead only where no finding of at least a warning describes, and among
them the order of LEADS counts, not how grave they are."""

ROOM: Final = {"GD0": "log", "GD1": "model", "GD2": "model", "GD3": "model", "GD4": "model", "GD5": "time", "GD6": "time",
               "GD7": "network"}  # fmt: skip
HARDWARE: Final = frozenset({"GD403", "GD404", "GD606"})
"""The machine's own reports: they join whatever the model did within a few rows of them."""

BROAD: Final = frozenset({"GD201", "GD207", "GD208", "GD210", "GD211", "GD213", "GD309"})
"""Findings that may last for the rest of the run: what is only worth knowing binds nothing together that comes later."""

RATED: Final = frozenset({"GD302", "GD303", "GD304", "GD306", "GD307"})
"""Findings to which the name of the schedule (GD301) belongs: beside others that begin in the same rows it says nothing."""

SLOWED: Final = frozenset({"GD501", "GD502", "GD504"})
UNTIMED: Final = frozenset({"GD601", "GD603", "GD604"})
"""What telemetry without a clock says of slow GPUs, and what it does to the steps."""

UNSTEADY: Final = frozenset({"GD102", "GD103", "GD104", "GD105", "GD109", "GD302", "GD307"})
"""Findings of a loss, or a rate, that is away from its course for a stretch."""

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

    @property
    def end(self) -> float:
        """Last step that the event explains; infinite once the model's state is in question."""
        alarms = [
            f for f in self.members if f.code in STATE and f.severity > Severity.INFO and not f.measure("isolated")
        ]
        if alarms:
            return float("inf")
        return max(
            (_end(f) or 0 for f in self.members if f.severity > Severity.INFO or f.code not in BROAD),
            default=self.start,
        )


def _end(finding: Finding) -> int | None:
    """Last step of a finding, its only one where it has one."""
    return finding.where.last_step if finding.where.last_step is not None else finding.where.step


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
            home = Group(_room(finding))
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


def _room(finding: Finding) -> str:
    if finding.code in HARDWARE:
        return "model"
    if finding.code == "GD707":
        return "time"
    return ROOM[finding.code[:3]]


def _by_onset(finding: Finding) -> tuple[float, float, int]:
    where = finding.where
    step = float(where.step) if where.step is not None else float("inf")
    return (step, where.time or 0.0, LEADS.index(finding.code) if finding.code in LEADS else len(LEADS))


def _home(finding: Finding, groups: list[Group], facts: RunFacts) -> Group | None:
    if finding.code == "GD207":
        same_layer = (
            g for g in groups if any(f.code == "GD211" and f.where.layer == finding.where.layer for f in g.members)
        )
        return next(same_layer, None)
    if _alone(finding):
        return None
    if finding.measure("meets_slow_steps") is True:
        slow = (g for g in groups if g.room == "time" or "GD009" in g.codes)
        return next((g for g in slow if _overlaps_in_time(finding, g)), None)
    room = _room(finding) if finding.code in PATTERN or finding.code.startswith(("GD5", "GD6")) else "model"
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
        if step is not None and _close(step, home, rows, facts) and _compatible(finding, home):
            return home
    return None


def _close(step: float, home: Group, rows: int, facts: RunFacts) -> bool:
    """Whether a step lies in an event or at most so many logged rows before or after it."""
    if step < home.start:
        return facts.apart(step, home.start) <= rows
    return step <= home.end or facts.apart(home.end, step) <= rows


def _alone(finding: Finding) -> bool:
    """Whether a finding is about a stretch or the log; a missing warm-up that ends badly and a surge of updates are events."""
    if finding.severity > Severity.INFO and (finding.code == "GD305" or _dies(finding)):
        return False
    return finding.code in ALONE and not _surge(finding)


def _dies(finding: Finding) -> bool:
    """Whether GD203 tells of a layer that lived until then."""
    return finding.code == "GD203" and finding.measure("from_start") is False


def _surge(finding: Finding) -> bool:
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
    unstable = next((g for g in groups if g.room == "model" and g.end == float("inf")), None)
    learning = next((g for g in groups if g.codes & LEARNING and g is not unstable), None)
    if unstable is None or learning is None or learning.codes & {"GD202", "GD303", "GD304"}:
        return
    unstable.members += learning.members
    groups.remove(learning)


def _absorb_exit(groups: list[Group], facts: RunFacts) -> None:
    """A run that stops because its numbers are not finite is one incident: the numbers."""
    ended = next((g for g in groups if g.codes == {"GD008"}), None)
    if ended is None:
        return
    exit_ = ended.members[0]
    step = exit_.where.step
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
    lasts = [last for f in group.members if (last := _end(f)) is not None]
    return bool(alarms and steps and lasts) and group.start <= min(steps) and max(steps) <= max(lasts)


def _absorb_validation(groups: list[Group]) -> None:
    """Validation that is lost after the training loss was is no event of its own."""
    lost = next((g for g in groups if g.codes & {"GD101", "GD116"} and g.end == float("inf")), None)
    own = next((g for g in groups if g.codes == {"GD111"}), None)
    if lost is None or own is None or own.members[0].measure("training_finite") is not False or own.start < lost.start:
        return
    lost.members += own.members
    groups.remove(own)


def case_of(members: list[Finding], others: tuple[Finding, ...], facts: RunFacts) -> Case:
    """Name and place an event."""
    named = [f for f in members if f.code in PATTERN]
    known = any(f.code in TAKEN_UP and f.severity > Severity.INFO for f in named)
    lead = min((f for f in named if not (known and f.code in FOLLOWS)), key=_precedence)
    spread = frozenset() if lead.code in LEARNING else LEARNING
    events = [f for f in members if f is lead or _surge(f) or _dies(f) or f.code not in ALONE | spread | {"GD008"}]
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
    lasts = [_end(f) for f in alarms]
    return Case(
        pattern=_pattern(lead), lead=lead, findings=tuple(members), others=others, facts=facts,
        onset=min(steps, default=None), last=_last(lead, max((s for s in lasts if s is not None), default=None), facts),
        layer=_layer(members, lead), rank=_first([lead.where.rank, *(f.where.rank for f in members)]),
        host=_first([lead.where.host, *(f.where.host for f in members)]),
        gpu=_first([lead.where.gpu, *(f.where.gpu for f in members)]), data=_window(members, min(steps, default=None), _pattern(lead), facts),
    )  # fmt: skip


STRETCHES: Final[frozenset[Pattern]] = frozenset(
    {
        "plateau", "no_learning", "eval_divergence", "vanishing_gradient", "dead_layer", "parameter_growth", "lr_schedule",
        "lr_discontinuity", "rank_mismatch", "scale_mismatch", "log_quality",
    }
)  # fmt: skip
"""Patterns that no batch brings about: the samples of their first step say nothing."""

LASTING: Final = frozenset({"GD102", "GD104", "GD105", "GD109"})
"""Losses that leave their level: where they do not come back the incident lasts on, however soon the new level is the usual one."""


def _pattern(lead: Finding) -> Pattern:
    if lead.measure("kind") == "crash_loop":
        return "abnormal_exit"
    if lead.code == "GD109" and lead.severity is Severity.INFO and lead.measure("kind") == "fresh_model":
        return "log_quality"  # where the log begins, and nothing says that the run had begun before
    if lead.code == "GD309" and lead.severity is Severity.INFO:
        return "log_quality"  # the optimizer took another rate than the one logged
    return "gradient_explosion" if _surge(lead) else PATTERN[lead.code]


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
    grave = min(finding.severity, Severity.WARNING) if hint else finding.severity
    return (hint or finding.severity == Severity.INFO, -grave, place, finding.where.step or 0)


LAYER_WITNESSES: Final = (
    "GD204",
    "GD208",
    "GD402",
    "GD401",
    "GD205",
    "GD201",
    "GD210",
    "GD202",
    "GD203",
    "GD211",
    "GD207",
)
"""Findings that may name the layer, best witness first."""


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
    """The samples that a finding names, else those of the onset's step where ids are logged."""
    for finding in members:
        first, last = finding.number("sample_start"), finding.number("sample_end")
        if first is not None and last is not None:
            return DataWindow(int(first), int(last))
    if onset is None or pattern in STRETCHES or all(_room(f) != "model" for f in members):
        return None
    return facts.windows.get(onset)
