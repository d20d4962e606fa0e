"""JSON report, version 1: the public contract for machines; keys are only ever added."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime, timedelta
from typing import Final

from gdiag.model import Cause, Finding, Incident, Location, Report, Run, Series, Source, Table, Value
from gdiag.renderers.words import quiet_json
from gdiag.version import VERSION

SCHEMA_VERSION: Final = 1
DIGITS: Final = 6
"""Significant digits of computed figures: more would be noise, and would differ between processors."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def render(report: Report, *, with_series: bool = False) -> str:
    """The report as JSON text with a final newline; what is not known is null, what is not finite is a string."""
    text = json.dumps(document(report, with_series=with_series), indent=2, ensure_ascii=False, allow_nan=False)
    return quiet_json(text) + "\n"


def document(report: Report, *, with_series: bool = False) -> dict[str, object]:
    """The report as plain dicts and lists in the order of the contract."""
    body: dict[str, object] = {
        "schema_version": SCHEMA_VERSION,
        "tool": {"name": "gdiag", "version": VERSION},
        "runs": [_run(run) for run in report.runs],
        "sources": [_source(source) for source in report.sources],
        "findings": [_finding(finding) for finding in report.findings],
        "incidents": [_incident(incident) for incident in report.incidents],
        "tables": [_table(table) for table in report.tables],
        "checked": list(report.checked),
        "skipped": [{"code": skip.code, "reason": skip.reason} for skip in report.skipped],
        "advice": list(report.advice),
    }
    if with_series:
        body["series"] = [_series(series) for series in report.series]
    return body


def moment(seconds: float | None, zone_known: bool) -> str | None:
    """RFC 3339 time of Unix seconds, in UTC; without offset when the clock's zone is unknown; None when out of range."""
    if seconds is None or not math.isfinite(seconds):
        return None
    try:
        when = _EPOCH + timedelta(seconds=seconds)
    except OverflowError:
        return None
    return (when if zone_known else when.replace(tzinfo=None)).isoformat(timespec="milliseconds")


def _run(run: Run) -> dict[str, object]:
    return {
        "id": run.id, "name": run.name, "exit": run.exit,
        "config": {key: _exact(value) for key, value in run.config.items()},
        "segments": [{"first_step": s.first_step, "last_step": s.last_step, "rows": s.rows} for s in run.segments],
    }  # fmt: skip


def _source(source: Source) -> dict[str, object]:
    return {
        "path": source.path, "format": source.format, "rows": source.rows, "rejected": source.rejected,
        "columns": dict(source.columns), "notes": list(source.notes),
    }  # fmt: skip


def _finding(finding: Finding) -> dict[str, object]:
    return {
        "code": finding.code, "name": finding.name, "severity": finding.severity.label, "message": finding.message,
        "where": _where(finding.where),
        "evidence": [
            {"name": m.name, "value": _rounded(m.value), "unit": m.unit, "limit": _rounded(m.limit)}
            for m in finding.evidence
        ],
    }  # fmt: skip


def _where(where: Location) -> dict[str, object]:
    return {
        "file": where.file, "line": where.line, "run": where.run, "rank": where.rank, "step": where.step,
        "last_step": where.last_step, "layer": where.layer, "host": where.host, "gpu": where.gpu,
        "time": moment(where.time, where.zone_known), "last_time": moment(where.last_time, where.zone_known),
    }  # fmt: skip


def _incident(incident: Incident) -> dict[str, object]:
    data, cost = incident.data, incident.cost
    return {
        "title": incident.title, "pattern": incident.pattern, "severity": incident.severity.label, "run": incident.run,
        "onset_step": incident.onset_step, "last_step": incident.last_step,
        "onset_time": moment(incident.onset_time, incident.zone_known),
        "last_time": moment(incident.last_time, incident.zone_known),
        "layer": incident.layer, "rank": incident.rank, "host": incident.host, "gpu": incident.gpu,
        "data": None if data is None else {"first_sample": data.first_sample, "last_sample": data.last_sample},
        "cost": {"steps": cost.steps, "seconds": _rounded(cost.seconds), "gpu_hours": _rounded(cost.gpu_hours)},
        "findings": list(incident.findings), "related": list(incident.related),
        "causes": [_cause(cause) for cause in incident.causes], "actions": list(incident.actions),
    }  # fmt: skip


def _cause(cause: Cause) -> dict[str, object]:
    return {
        "cause": cause.cause, "score": _rounded(cause.score), "band": cause.band, "basis": cause.basis, "supports": list(cause.supports),
        "contradicts": list(cause.contradicts), "missing": list(cause.missing),
    }  # fmt: skip


def _table(table: Table) -> dict[str, object]:
    return {
        "title": table.title, "columns": [{"name": c.name, "unit": c.unit} for c in table.columns],
        "rows": [[_rounded(cell) for cell in row] for row in table.rows],
    }  # fmt: skip


def _series(series: Series) -> dict[str, object]:
    return {
        "name": series.name, "unit": series.unit, "run": series.run, "rank": series.rank, "layer": series.layer,
        "host": series.host, "gpu": series.gpu, "x": [_exact(x) for x in series.x],
        "low": [_rounded(y) for y in series.low], "high": [_rounded(y) for y in series.high],
    }  # fmt: skip


def _rounded(value: Value | None) -> Value | None:
    """`value` as JSON can hold it; fractions to DIGITS significant digits, whole numbers exactly."""
    if isinstance(value, float) and math.isfinite(value) and not value.is_integer():
        return float(f"{value:.{DIGITS}g}")
    return None if value is None else _exact(value)


def _exact(value: Value) -> Value:
    if not isinstance(value, float):
        return value
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return value
