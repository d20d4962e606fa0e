"""The findings as SARIF 2.1.0, for code-scanning pages and editors that show results beside the line of the log."""

from __future__ import annotations

import json
from typing import Final
from urllib.parse import quote

from gdiag.model import Finding, Incident, Location, Report, Severity
from gdiag.renderers import words
from gdiag.version import VERSION

_LEVEL: Final = {Severity.INFO: "note", Severity.WARNING: "warning", Severity.CRITICAL: "error"}
SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"


def render(report: Report) -> str:
    """One run with a rule per code that was checked and a result per finding, in the report's order."""
    names = {finding.code: finding.name for finding in report.findings}
    rules = sorted({*report.checked, *names})
    explained = {index: incident for incident in reversed(report.incidents) for index in incident.findings}
    document = {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {"name": "gdiag", "version": VERSION, "rules": [_rule(code, names) for code in rules]}
                },
                "columnKind": "unicodeCodePoints",
                "results": [
                    _result(finding, rules.index(finding.code), explained.get(index))
                    for index, finding in enumerate(report.findings)
                ],
            }
        ],
    }
    text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)
    return words.quiet_json(text) + "\n"


def _rule(code: str, names: dict[str, str]) -> dict[str, object]:
    rule: dict[str, object] = {"id": code}
    if code in names:
        rule["name"] = names[code]
    return rule


def _result(finding: Finding, rule: int, incident: Incident | None) -> dict[str, object]:
    """A finding; its message ends with the likeliest cause of its incident, where one is named."""
    text = finding.message
    if incident is not None and incident.causes:
        best = incident.causes[0]
        text += f" (likeliest cause: {best.cause}, {best.band})"
    result: dict[str, object] = {
        "ruleId": finding.code, "ruleIndex": rule, "level": _LEVEL[finding.severity], "message": {"text": words.shown(text)},
    }  # fmt: skip
    if finding.where.file is not None and finding.where.file != "-":
        result["locations"] = [_location(finding.where)]
    return result


def _location(where: Location) -> dict[str, object]:
    path = quote((where.file or "").replace("\\", "/"), safe="/:", errors="surrogateescape")
    physical: dict[str, object] = {"artifactLocation": {"uri": f"file://{path}" if path.startswith("/") else path}}
    if where.line is not None:
        physical["region"] = {"startLine": where.line}
    location: dict[str, object] = {"physicalLocation": physical}
    if where.layer is not None:
        location["logicalLocations"] = [{"fullyQualifiedName": words.shown(where.layer), "kind": "module"}]
    return location
