from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest

from gdiag.model import Report
from gdiag.renderers.json_v1 import document, moment, render
from tests.renderers.reports import SPIKE

# The contract of version 1, every key in its order; lists hold the shape of each of their items.
CONTRACT: dict[str, object] = {
    "schema_version": int,
    "tool": {"name": str, "version": str},
    "runs": [{"id": str, "name": None, "exit": str, "config": dict, "segments": [{"first_step": int, "last_step": int, "rows": int}]}],
    "sources": [{"path": str, "format": str, "rows": int, "rejected": int, "columns": dict, "notes": [str]}],
    "findings": [
        {
            "code": str, "name": str, "severity": str, "message": str,
            "where": {"file": None, "line": None, "run": None, "rank": None, "step": None, "last_step": None, "layer": None, "host": None, "gpu": None, "time": None, "last_time": None},
            "evidence": [{"name": str, "value": None, "unit": str, "limit": None}],
        }
    ],
    "incidents": [
        {
            "title": str, "pattern": str, "severity": str, "run": str, "onset_step": None, "last_step": None, "onset_time": None,
            "last_time": None, "layer": None, "rank": None, "host": None, "gpu": None, "data": None,
            "cost": {"steps": None, "seconds": None, "gpu_hours": None}, "findings": [int], "related": [int],
            "causes": [{"cause": str, "score": float, "band": str, "basis": str, "supports": [str], "contradicts": [str], "missing": [str]}],
            "actions": [str],
        }
    ],
    "tables": [{"title": str, "columns": [{"name": str, "unit": str}], "rows": [list]}],
    "checked": [str],
    "skipped": [{"code": str, "reason": str}],
    "advice": [str],
}  # fmt: skip


def walk(value: object, shape: object, path: str = "report") -> None:
    if isinstance(shape, dict):
        assert isinstance(value, dict), path
        assert list(value) == list(shape), path
        for key, inner in shape.items():
            walk(value[key], inner, f"{path}.{key}")
    elif isinstance(shape, list):
        assert isinstance(value, list), path
        for index, item in enumerate(value):
            walk(item, shape[0], f"{path}[{index}]")
    elif isinstance(shape, type):
        assert isinstance(value, shape), path


def test_every_key_of_the_contract_is_there_in_its_order() -> None:
    walk(json.loads(render(SPIKE)), CONTRACT)


def test_an_empty_report_has_the_same_keys() -> None:
    walk(json.loads(render(Report())), CONTRACT)


def test_what_is_not_finite_is_written_as_a_string() -> None:
    findings = json.loads(render(SPIKE))["findings"]
    assert findings[0]["evidence"][1]["value"] == "Infinity"
    series = json.loads(render(SPIKE, with_series=True))["series"][0]
    assert series["high"][40] == "NaN"
    assert "NaN," not in render(SPIKE, with_series=True).replace('"NaN",', "")


def test_booleans_and_whole_numbers_keep_their_type() -> None:
    evidence = json.loads(render(SPIKE))["findings"][0]["evidence"]
    assert evidence[0]["value"] == 300
    assert evidence[2]["value"] is False


def test_computed_figures_are_rounded_and_logged_ones_are_not() -> None:
    report = json.loads(render(SPIKE))
    assert report["findings"][1]["evidence"][0]["value"] == 3.1
    assert report["runs"][0]["config"]["lr"] == 3e-4


@pytest.mark.parametrize(
    ("seconds", "zone_known", "text"),
    [
        (0.0, True, "1970-01-01T00:00:00.000+00:00"),
        (1.7e9 + 0.25, False, "2023-11-14T22:13:20.250"),
        (-86400.0, True, "1969-12-31T00:00:00.000+00:00"),
        (None, True, None),
        (math.nan, True, None),
        (1e30, True, None),
    ],
)
def test_times_are_rfc_3339_with_an_offset_only_where_the_zone_is_known(
    seconds: float | None, zone_known: bool, text: str | None
) -> None:
    assert moment(seconds, zone_known) == text


def test_a_file_name_that_is_no_utf_8_is_still_valid_json() -> None:
    report = replace(SPIKE, sources=(replace(SPIKE.sources[0], path="logs/\udcff.jsonl"),))
    text = render(report)
    assert json.loads(text.encode())["sources"][0]["path"] == "logs/\udcff.jsonl"


def test_series_are_written_only_on_request() -> None:
    assert "series" not in document(SPIKE)
    assert "series" in document(SPIKE, with_series=True)
