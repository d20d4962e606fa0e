from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

from gdiag.errors import UsageError
from gdiag.model import Finding, Incident, Location, Report, Segment, Severity, Table
from gdiag.schema import KEYS, TABLES, LayerColumn, Records
from gdiag.tables.show import around
from tests.tables.steps import records


def report(held: Records) -> Report:
    spot = Location(run="run", step=50)
    findings = tuple(Finding(f"GD10{k}", "x", Severity.WARNING, "m", spot) for k in range(3))
    incidents = (
        Incident("far", "plateau", Severity.WARNING, "run", 80, 90, findings=(0,)),
        Incident("near", "single_spike", Severity.WARNING, "run", 48, 52, findings=(1, 2), related=(0,)),
    )
    runs = tuple(replace(run, segments=(Segment(0, 99, 100),)) for run in held.runs)
    return Report(runs=runs, sources=held.sources, findings=findings, incidents=incidents)


def named(found: Report, beginning: str) -> Table:
    return next(t for t in found.tables if t.title.startswith(beginning))


def test_the_rows_around_the_step_stand_beside_the_usual_value() -> None:
    held = records(loss=[3.0] * 50 + [9.0] + [3.0] * 49, time=[1e9 + k for k in range(100)])
    table = named(around(report(held), held, 50, 2), "Step 50")
    assert [c.name for c in table.columns] == ["metric", "usual", "48", "49", ">50", "51", "52"]
    assert ("loss [nat]", 3.0, 3.0, 3.0, 9.0, 3.0, 3.0) in table.rows
    assert ("time [s from here]", None, -2.0, -1.0, 0.0, 1.0, 2.0) in table.rows


def test_incidents_of_that_step_are_kept_and_numbered_anew() -> None:
    held = records(loss=[3.0] * 100)
    found = around(report(held), held, 50)
    assert [i.title for i in found.incidents] == ["near"]
    assert [f.code for f in found.findings] == ["GD101", "GD102"]
    assert found.incidents[0].findings == (0, 1)


def test_a_step_between_logged_ones_says_so() -> None:
    held = records(loss=[3.0] * 100)
    sparse = replace(held, steps=held.steps.filter(pl.col("step") % 10 == 0))
    assert around(report(held), sparse, 54).tables[0].title == "Step 50 (step 54 was not logged, the row before it was)"


@pytest.mark.parametrize("step", [-1, 100])
def test_a_step_outside_the_log_is_refused(step: int) -> None:
    held = records(loss=[3.0] * 100)
    with pytest.raises(UsageError, match="0 to 99"):
        around(report(held), held, step)


def test_layers_are_ordered_by_how_far_they_moved() -> None:
    held = records(loss=[3.0] * 100)
    keys = {"run": ["run"] * 60, "rank": [None] * 60, "step": list(range(60)), "source": [0] * 60, "line": [1] * 60}
    norms = {"grad_norm:a": [1.0] * 60, "grad_norm:b": [1.0] * 50 + [50.0] + [1.0] * 9}
    layers = pl.DataFrame({**keys, **norms}).cast(pl.Schema(KEYS))
    catalogue = tuple(LayerColumn(f"grad_norm:{x}", x, "grad_norm", None, "other") for x in "ab")
    table = named(around(report(held), replace(held, layers=layers, layer_columns=catalogue), 50), "Layers")
    assert table.rows == (("b", "grad_norm", 50.0, 1.0, 50.0, 50), ("a", "grad_norm", 1.0, 1.0, 1.0, 50))


def test_ranks_stand_under_each_other() -> None:
    held = records(loss=[3.0, 3.1] * 50, ranks=[0, 1] * 50)
    table = named(around(report(held), held, 20), "Ranks")
    assert table.rows == ((0, 3.0), (1, 3.1))


def test_gpus_have_units_and_their_reasons_names() -> None:
    held = records(time=[1e9 + 2.0 * i for i in range(100)])
    card = {
        "run": "run",
        "time": 1e9 + 100.0,
        "host": "n1",
        "gpu": 0,
        "temperature": 88.0,
        "power": 410.0,
        "reasons": 0x60,
    }
    gpus = pl.DataFrame([card], schema_overrides=TABLES["gpus"])
    shown = named(around(report(held), replace(held, gpus=gpus), 50), "GPUs at that time")
    assert [(c.name, c.unit) for c in shown.columns] == [
        ("host", ""), ("gpu", ""), ("temperature", "°C"), ("power", "W"), ("reasons", ""),
    ]  # fmt: skip
    assert shown.rows == (("n1", 0, 88.0, 410.0, "sw_thermal_slowdown, hw_thermal_slowdown"),)
