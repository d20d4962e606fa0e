"""What triage knows about a cause before any log is read: for `gdiag explain CAUSE`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gdiag.model import Finding, Location, Severity
from gdiag.triage.actions import ACTIONS
from gdiag.triage.case import Case
from gdiag.triage.evidence import RULES
from gdiag.triage.priors import PRIORS
from gdiag.triage.wanted import WANTED


@dataclass(frozen=True, slots=True)
class About:
    """One cause in the tables of triage."""

    cause: str
    patterns: tuple[tuple[str, float], ...]
    """Patterns that it may explain and its prior share there, likeliest first."""
    families: tuple[tuple[str, float, float], ...]
    """Family of evidence, the strongest weight for the cause and the strongest against it (log odds, 0 = none)."""
    wanted: tuple[str, ...]
    """What would decide, where it is not logged."""
    actions: tuple[str, ...]


def causes() -> tuple[str, ...]:
    """Every cause that triage can name, in order of the alphabet."""
    return tuple(sorted({cause for shares in PRIORS.values() for cause in shares} | set(ACTIONS)))


def about(cause: str) -> About:
    """The tables' entries of one of `causes()`."""
    patterns = [(pattern, shares[cause]) for pattern, shares in PRIORS.items() if cause in shares]
    rules = [rule for rule in RULES if rule.cause == cause]
    families = dict.fromkeys(rule.family for rule in rules)
    empty = Case(
        patterns[0][0] if patterns else "log_quality", Finding("", "", Severity.INFO, "", Location()), findings=()
    )
    return About(
        cause=cause,
        patterns=tuple(sorted(patterns, key=lambda item: -item[1])),
        families=tuple(
            (family, _most(r.weight for r in rules if r.family == family), -_most(-r.weight for r in rules if r.family == family))
            for family in families
        ),
        wanted=tuple(text for _, text in WANTED.get(cause, ())),
        actions=tuple(text for action in ACTIONS.get(cause, ()) if (text := action(empty))),
    )  # fmt: skip


def _most(weights: Iterable[float]) -> float:
    return max([0.0, *weights])
