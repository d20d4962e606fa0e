"""Findings of many test runs that say the same of each: one finding, with the figures of the worst."""

from __future__ import annotations

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
    for sweep, finding in found:
        path = finding.measure("path")
        evidence = tuple(measure.name for measure in finding.evidence)
        kinds.setdefault((sweep.collective, sweep.n, sweep.hosts, finding.severity, path, evidence), []).append(finding)
    out: list[Finding] = []
    for same in kinds.values():
        if len(same) <= FEW:
            out += same
            continue
        worst = (min if least else max)(same, key=lambda finding: finding.number(by) or 0.0)
        text = f"{worst.message} (the worst of {len(same)} test runs alike)"
        out.append(replace(worst, message=text, evidence=(*worst.evidence, Measure("test_runs", len(same)))))
    return out
