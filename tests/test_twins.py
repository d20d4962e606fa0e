"""One run written as CSV, JSONL and TensorBoard events gives the same incidents."""

from __future__ import annotations

from pathlib import Path

import pytest

from gdiag.pipeline import diagnose, load
from tests.ingesters.encoders import tf_events
from tests.made_reports import FAULTS, brief, made, report


@pytest.mark.parametrize(("fault", "tensors"), [*((fault, False) for fault in FAULTS), ("step_up", True)])
def test_csv_and_event_files_tell_the_same(fault: str, tensors: bool, tmp_path: Path) -> None:
    rows = made(fault)
    names = list(rows[0])
    lines = [",".join(names), *(",".join(repr(row[name]) for name in names) for row in rows)]
    table = tmp_path / "metrics.csv"
    table.write_text("\n".join(lines) + "\n")
    events = tmp_path / "events.out.tfevents.1"
    points = [(1.6e9, int(row["step"]), f"train/{name}", row[name]) for row in rows for name in names[1:]]
    events.write_bytes(tf_events(points, tensors))
    told = brief(diagnose(load([events])))
    assert told == brief(diagnose(load([table]))) == brief(report(rows, tmp_path))
    assert [pattern for pattern, *_ in told] == [fault] * (fault != "healthy")
