"""What a fault module gives: a name, what it does to the forces of a run, and what must be logged to see it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from gdiag.simulate.forces import Forces, Group
from gdiag.simulate.rows import Row
from gdiag.simulate.truth import Event

UNSTABLE: Final = (
    "divergence",
    "gradient_explosion",
    "no_learning",
    "nonfinite",
    "plateau",
    "repeated_spikes",
    "step_up",
)
"""Patterns that a run beyond the stability limit may take."""


def needs(*groups: Group) -> frozenset[Group]:
    """The groups of columns that a fault cannot be seen without."""
    return frozenset(groups)


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault, or one trap for false alarms where `healthy`."""

    name: str
    summary: str
    apply: Callable[[Forces], list[Event]]
    """Bends the forces and says what a reader of the log should find."""
    needs: frozenset[Group] = frozenset()
    """Groups of columns without which it cannot be seen."""
    healthy: bool = False
    note: str = ""
    tolerated: tuple[str, ...] = ()
    rewrite: Callable[[Forces, list[Row]], list[Row]] | None = None
    """Bends the rows: drops some, interleaves another run's."""
    damage: Callable[[Forces, bytes], bytes] | None = None
    """Bends the written file."""
    scratch: bool = False
    """Only happens to a model trained from scratch, not to a fine-tuned one."""
    sudden: bool = True
    """Only the loss shows it, perhaps for a few steps: a sparse or noisy log may not hold it."""
