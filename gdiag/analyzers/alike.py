"""Findings of many test runs that say the same of each: one finding, with the figures of the worst."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Final

from gdiag.measures.bandwidth import Sweep
from gdiag.model import Finding, Measure

FEW: Final = 6
"""So many alike are named one by one."""

Case = tuple[Sweep, tuple[object, ...], float, Callable[[], Finding]]
"""A test run, what kind of fault it shows, how bad it is (larger is worse), and the finding, made only where it is told."""


@dataclass(slots=True)
class _Kind:
    count: int = 0
    held: list[tuple[float, Callable[[], Finding]]] = field(default_factory=list)


def grouped(cases: Iterable[Case]) -> list[Finding]:
    """Findings in their order; where more than FEW agree in collective, ranks, hosts and kind, the worst."""
    kinds: dict[tuple[object, ...], _Kind] = {}
    for sweep, name, badness, make in cases:
        kind = kinds.setdefault((sweep.collective, sweep.n, sweep.hosts, *name), _Kind())
        kind.count += 1
        if kind.count <= FEW:
            kind.held.append((badness, make))
        elif badness > kind.held[0][0] or kind.count == FEW + 1:
            # Of many only the worst is kept: a file may hold findings by the hundred thousand.
            kind.held = [max((*kind.held, (badness, make)), key=lambda case: case[0])]
    return [finding for kind in kinds.values() for finding in _told(kind)]


def _told(kind: _Kind) -> list[Finding]:
    found = [make() for _, make in kind.held]
    if kind.count <= FEW:
        return found
    (worst,) = found
    text = f"{worst.message} (the worst of {kind.count} test runs alike)"
    return [replace(worst, message=text, evidence=(*worst.evidence, Measure("test_runs", kind.count)))]
