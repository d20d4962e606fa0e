"""What can be seen of values that stop being finite, as sentences: None where they do not apply."""

from __future__ import annotations

from typing import Final

from gdiag.reference.figures import whole
from gdiag.triage.case import Case

ROWS_BEFORE: Final = 3
"""Rows before an onset that a rise would take to be seen."""


def no_run_up(case: Case) -> str | None:
    """A run-up that another finding of the incident saw is a run-up."""
    finding = case.find("GD101")
    if finding is None or finding.measure("without_run_up") is not True:
        return None
    step, rows = finding.where.step, case.facts.rows
    if step is not None and case.onset is not None and case.onset < step:
        return None
    if step is not None and rows is not None and int((rows < step).sum()) < ROWS_BEFORE:
        return None  # there is nothing that could have risen
    return "nothing rises in the rows before it"


def lost_at_first(case: Case) -> str | None:
    """A loss that is lost in the very first step, before anything was updated."""
    finding = case.find("GD101")
    first = case.facts.first_step
    if finding is None or finding.where.step is None or first is None or not case.number("rows", "GD101"):
        return None
    return "the loss is lost in the first step, before any update" if finding.where.step == first <= 1 else None


def lost_in_validation(case: Case) -> str | None:
    """A validation loss that is not finite where nothing says that training's was lost before."""
    finding = case.find("GD111")
    return finding.message if finding is not None and case.find("GD101", "GD116") is None else None


def gradient_first(case: Case) -> str | None:
    """A gradient that is lost before the loss, or without it."""
    if case.value("gradient_first", "GD101") is not True or case.find("GD116") is not None:
        return None  # zeros that stand for NaN keep no order
    alone = case.number("rows", "GD101") == 0
    return "the gradient is not finite while the loss is" if alone else "the gradient is non-finite before the loss"


GREW: Final = 100.0
"""Growth of a loss before its first value that is no number from which it overflowed by growing."""


def grew_away(case: Case) -> str | None:
    """A loss that grows for many rows until it cannot be written was lost where it began to grow."""
    away, end = case.find("GD104", "GD102"), case.find("GD101")
    if away is None or end is None or away.where.step is None or end.where.step is None:
        return None
    before, after, excess = (away.number(name) for name in ("level_before", "level_after", "peak_excess"))
    if away.code == "GD102" and before is not None and excess is not None:
        after = before + excess if away.measure("recovered") is False else None
    if before is None or after is None or not after >= GREW * max(before, 1e-300) or end.where.step <= away.where.step:
        return None
    times = after / max(before, 1e-300)
    return f"the loss grew {whole(times)}-fold in the {end.where.step - away.where.step} steps before: it overflowed by growing"


def stopped_over_numbers(case: Case) -> str | None:
    """The program's last words, where no row shows what they say."""
    if case.find("GD101") is not None or case.value("loss_scale_at_minimum", "GD008") is not False:
        return None
    return "the run stopped because its loss was not finite"
