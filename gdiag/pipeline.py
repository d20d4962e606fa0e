"""load → measure → analyze → triage: the whole story on one screen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from gdiag.analyzers import ANALYZERS
from gdiag.analyzers.analyzer import Analyzer, missing
from gdiag.measures.run import RunView
from gdiag.model import Finding, Location, Report, Skip, Value
from gdiag.schema import Records


def diagnose(
    records: Records,
    thresholds: Mapping[str, Mapping[str, Value]] | None = None,
    analyzers: Sequence[Analyzer] = ANALYZERS,
) -> Report:
    """Judge every run in `records` with every analyzer whose columns are there, and explain what was found."""
    views = [RunView(run, records) for run in records.runs]
    findings: list[Finding] = []
    checked: list[str] = []
    skipped: list[Skip] = []
    for analyzer in analyzers:
        lacking: list[str] = []
        ran = False
        for view in views:
            lacking = missing(view, analyzer.NEEDS)
            if not lacking:
                findings += analyzer.analyze(view, **(thresholds or {}).get(analyzer.CODE, {}))
                ran = True
        if ran:
            checked.append(analyzer.CODE)
        else:
            skipped.append(Skip(analyzer.CODE, f"no {', no '.join(need.replace('|', ' or ') for need in lacking)}"))
    return Report(
        runs=tuple(replace(view.run, segments=view.trajectory.segments) for view in views), sources=records.sources, findings=tuple(sorted(findings, key=_by_severity_then_place)),
        checked=tuple(checked), skipped=tuple(skipped),
    )  # fmt: skip


def _by_severity_then_place(finding: Finding) -> tuple[object, ...]:
    where: Location = finding.where
    step = where.step if where.step is not None else -1
    return (
        -finding.severity,
        where.run or "",
        step,
        where.time or 0.0,
        finding.code,
        where.rank or 0,
        where.layer or "",
    )
