"""Findings of many test runs that say the same of each: one finding, with the figures of the worst."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from gdiag.measures.bandwidth import Sweep
from gdiag.model import Finding, Measure

FEW: Final = 6
"""So many alike are named one by one."""


def grouped(found: Iterable[tuple[Sweep, Finding]], by: str, *, least: bool = True) -> list[Finding]:
    """Findings in their order; where more than FEW agree in collective, ranks, severity and kind of evidence, the worst.

    by: name of the evidence that tells the worst, the smallest value where `least`, else the largest.
    """
    kinds: dict[tuple[object, ...], list[Finding]] = {}
    counts: Counter[tuple[object, ...]] = Counter()
    worst_of = min if least else max
    for sweep, finding in found:
        path = finding.measure("path")
        evidence = tuple(measure.name for measure in finding.evidence)
        kind = (sweep.collective, sweep.n, sweep.hosts, finding.severity, path, evidence)
        same = kinds.setdefault(kind, [])
        same.append(finding)
        counts[kind] += 1
        if counts[kind] > FEW:
            # Of many only the worst is kept: a file may hold findings by the hundred thousand.
            same[:] = [worst_of(same, key=lambda held: held.number(by) or 0.0)]
    out: list[Finding] = []
    for alike, same in kinds.items():
        if counts[alike] <= FEW:
            out += same
            continue
        (worst,) = same
        text = f"{worst.message} (the worst of {counts[alike]} test runs alike)"
        out.append(replace(worst, message=text, evidence=(*worst.evidence, Measure("test_runs", counts[alike]))))
    return out
