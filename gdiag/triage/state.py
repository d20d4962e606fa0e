"""What a run can go back to, and whether there is anything to undo."""

from __future__ import annotations

import math
from typing import Final

from gdiag.model import Finding, Severity
from gdiag.triage.case import Case


def setting(case: Case, name: str) -> float | None:
    """A positive number of the run's configuration, None where it is not known."""
    value = case.facts.config.get(name)
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    return float(value) if math.isfinite(value) and value > 0 else None


FIRST_STEPS = 10
"""Steps from the start of a run within which nobody saves a checkpoint."""


def from_start(case: Case) -> bool:
    """Whether the fault was there in the first rows of a run that began at its beginning: nothing before it is sound."""
    first, interval = case.facts.first_step, case.facts.interval
    if case.onset is None or first is None or first > interval:
        return False
    return case.onset <= first + max(interval, FIRST_STEPS) and case.facts.checkpoint_before(case.onset) is None


GOES_ON = frozenset({"GD101", "GD103", "GD104", "GD105", "GD112", "GD201", "GD401", "GD402", "GD403", "GD404", "GD606"})
"""Findings, as alarms, after which what was left its level for a while is not all that happened."""


def over(case: Case) -> bool:
    """Whether the event passed by itself: the level is regained, and nothing that goes on belongs to it."""
    alarms = [f for f in case.findings if f.code in GOES_ON and f.severity > Severity.INFO]
    goes_on = any(f.code == "GD103" or not _back(f) for f in alarms)  # what comes again and again is not over between
    jumped = case.lead.code == "GD302" and case.lead.measure("lasts") is False
    spiked = [f for f in case.findings if f.code == "GD102"]
    return (
        not goes_on
        and not _cost_the_run(case)
        and (_back(case.lead) or (jumped and bool(spiked) and all(_back(f) for f in spiked)))
    )


COSTLY: Final = 0.3
"""Share of the run that a fault from its first steps on costs, from which it is not over with nothing lost."""


def _cost_the_run(case: Case) -> bool:
    """Whether the run went wrong in its first steps and was so for much of its length."""
    first, end = case.facts.first_step, case.facts.last_step
    if first is None or end is None or case.onset is None or case.last is None or not from_start(case):
        return False
    return case.last - case.onset >= COSTLY * (end - first)


def comes_back(case: Case) -> bool:
    """Whether repeated spikes are all there is, and the loss is back after each."""
    alarms = [f for f in case.findings if f.code in GOES_ON and f.severity > Severity.INFO and f.code != "GD103"]
    return _back(case.lead) and all(_back(f) for f in alarms)


def _back(finding: Finding) -> bool:
    """Whether the level of before is regained, at once or later."""
    return finding.measure("recovered") is True or finding.number("regained_step") is not None


def by_step(case: Case) -> str:
    """When it was over, where that is known."""
    back = case.lead.number("regained_step") or case.number("recovery_step") or case.number("regained_step")
    return f" by step {back:.0f}" if back is not None else ""


def gap_of_recovery(case: Case) -> tuple[int, int] | None:
    """The gap of the log that ends with the first row at the level of before: (last step before, first step after)."""
    back = case.number("recovery_step")
    return next((gap for gap in case.facts.gaps if gap[1] == back), None)


def half_written(case: Case) -> bool:
    """Whether the run ended as a file could not be written: what was being saved then cannot be loaded."""
    return case.value("storage", "GD008") is True


def saved_before_end(case: Case) -> int | None:
    """The last checkpoint that a run which ended at the onset can go on from."""
    return case.facts.checkpoint_before(case.onset + (not half_written(case))) if case.onset is not None else None


def return_point(case: Case) -> str:
    """The last checkpoint before the onset: as found, else as the configured interval has it, else in words."""
    if case.onset is None:
        return "the last good checkpoint"
    saved = case.facts.checkpoint_before(case.onset)
    if saved is not None:
        return f"the checkpoint of step {saved}"
    every = setting(case, "checkpoint_interval")
    due = int((case.onset - 1) // every * every) if every else 0
    hint = f" (step {due}, as they are due every {every:g})" if due > 0 else ""
    return f"the last checkpoint before step {case.onset}{hint}"
