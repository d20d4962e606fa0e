from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from gdiag.model import Report
from gdiag.renderers.sarif import render
from tests.renderers.reports import SPIKE


def run(report: Report) -> Any:
    document = json.loads(render(report))
    assert document["version"] == "2.1.0"
    return document["runs"][0]


def test_results_point_at_the_line_of_the_log_and_name_the_likeliest_cause() -> None:
    results = run(SPIKE)["results"]
    assert [(r["ruleId"], r["level"]) for r in results] == [("GD101", "error"), ("GD102", "warning")]
    assert results[1]["message"]["text"].endswith("recovers within 5 steps (likeliest cause: bad_batch, high)")
    place = results[1]["locations"][0]
    assert place["physicalLocation"] == {
        "artifactLocation": {"uri": "logs/run.jsonl"},
        "region": {"startLine": 268},
    }
    assert place["logicalLocations"][0]["fullyQualifiedName"] == "blocks.0.fc"


def test_every_result_belongs_to_a_rule_and_every_check_is_one() -> None:
    found = run(SPIKE)
    rules = [rule["id"] for rule in found["tool"]["driver"]["rules"]]
    assert rules == ["GD101", "GD102"]
    assert [rules[r["ruleIndex"]] for r in found["results"]] == [r["ruleId"] for r in found["results"]]


def test_paths_become_valid_uris_and_standard_input_has_none() -> None:
    def placed(path: str) -> Any:
        findings = tuple(replace(f, where=replace(f.where, file=path)) for f in SPIKE.findings)
        return run(replace(SPIKE, findings=findings))["results"][0].get("locations")

    uri = placed("/data/my run/\udcff.jsonl")[0]["physicalLocation"]["artifactLocation"]["uri"]
    assert uri == "file:///data/my%20run/%FF.jsonl"
    assert placed("-") is None


def test_a_healthy_run_has_rules_and_no_results() -> None:
    found = run(Report(checked=("GD101",)))
    assert found["results"] == []
    assert found["tool"]["driver"]["rules"] == [{"id": "GD101"}]
