from __future__ import annotations

from dataclasses import replace

import pytest

from gdiag.errors import UsageError
from gdiag.model import (
    Band,
    Cause,
    DataWindow,
    Finding,
    Incident,
    Location,
    Measure,
    Pattern,
    Report,
    Run,
    Segment,
    Severity,
    Table,
)
from gdiag.schema import Records
from gdiag.tables.compare import compare
from tests.tables.steps import records


def report(held: Records, *incidents: Incident) -> Report:
    runs = tuple(replace(run, segments=(Segment(0, 99, 100),)) for run in held.runs)
    return Report(runs=runs, sources=held.sources, incidents=incidents, checked=("GD102",))


def table(found: Report, title: str) -> Table:
    return next(t for t in found.tables if t.title.startswith(title))


def spike(step: int, first: int) -> Incident:
    return Incident(
        "s",
        "single_spike",
        Severity.WARNING,
        "run",
        step,
        step + 2,
        data=DataWindow(first, first + 8),
        causes=(Cause("bad_batch", 0.8, "high"),),
    )


FLAT = records(loss=[3.0] * 100, lr=[1e-3] * 100, batch_size=[256.0] * 100)
LARGE = records(loss=[3.0] * 60 + [3.5] * 40, lr=[2e-3] * 100, batch_size=[1024.0] * 100)


def test_faults_are_paired_by_pattern_and_the_same_samples_are_said() -> None:
    only = Incident("p", "plateau", Severity.WARNING, "run", 50, 99)
    info = Incident("i", "step_up", Severity.INFO, "run", 50, 99)
    found = compare((report(FLAT, spike(40, 320), only, info), FLAT), (report(FLAT, spike(70, 322)), FLAT))
    assert table(found, "Faults").rows == (
        ("single_spike", 40, 70, "in both, at the same samples", "bad_batch (high)", "bad_batch (high)"),
        ("plateau", 50, None, "only in A", None, None),
    )
    assert [i.run for i in found.incidents] == ["A:run", "A:run", "A:run", "B:run"]


def test_one_cause_may_take_another_course() -> None:
    def shown(pattern: Pattern, step: int, band: Band, cause: str = "lr_too_high") -> Incident:
        return Incident("s", pattern, Severity.WARNING, "run", step, causes=(Cause(cause, 0.8, band),))

    def rows(one: Incident, two: Incident) -> list[tuple[object, ...]]:
        return list(table(compare((report(FLAT, one), FLAT), (report(FLAT, two), FLAT)), "Faults").rows)

    divergence = shown("divergence", 54, "high")
    assert rows(divergence, shown("nonfinite", 98, "medium")) == [
        ("divergence / nonfinite", 54, 98, "in both, by another course", "lr_too_high (high)", "lr_too_high (medium)"),
    ]  # fmt: skip
    assert len(rows(divergence, shown("nonfinite", 98, "low"))) == 2
    assert len(rows(shown("divergence", 54, "high", "unknown"), shown("nonfinite", 98, "high", "unknown"))) == 2


def test_no_fault_is_said_and_not_left_out() -> None:
    found = compare((report(FLAT), FLAT), (report(FLAT), FLAT))
    assert table(found, "Faults").title == "Faults: none of warning or above in either run"


def test_work_per_step_is_taken_from_counters() -> None:
    one = records(loss=[3.0] * 50, lr=[1e-3] * 50, tokens=[1024.0 * (i + 1) for i in range(50)])
    two = records(loss=[3.0] * 50, lr=[1e-3] * 50, tokens=[4096.0 * (i + 1) for i in range(50)])
    found = compare((report(one), one), (report(two), two))
    rows = {str(row[0]): row[1:] for row in table(found, "Levels").rows}
    assert rows["tokens per step"] == (1024.0, 4096.0, 3072.0, 4.0)
    assert (
        table(found, "Learning rate").title
        == "Learning rate for batch 4,096 tokens from 0.001 at batch 1,024 tokens; B has 0.001"
    )
    assert "samples per step" not in {
        str(row[0]) for row in table(compare((report(FLAT), FLAT), (report(LARGE), LARGE)), "Levels").rows
    }


def test_levels_stand_beside_each_other() -> None:
    found = compare((report(FLAT, spike(40, 0)), FLAT), (report(LARGE), LARGE))
    rows = {str(row[0]): row[1:] for row in table(found, "Levels").rows}
    assert rows["loss, median of steps 95–99 [nat]"] == (3.0, 3.5, 0.5, 3.5 / 3)
    assert rows["spikes"] == (0, 0, 0, None)
    assert rows["learning rate, peak"][:2] == (1e-3, 2e-3)


def test_a_larger_batch_gets_both_predictions_of_the_learning_rate() -> None:
    found = compare((report(FLAT), FLAT), (report(LARGE), LARGE))
    rows = {str(row[0]): row[1:] for row in table(found, "Learning rate").rows}
    assert rows["square root of the batch ratio"] == (2e-3, 1.0)
    assert rows["linear in the batch ratio"] == (4e-3, 0.5)


def test_the_whole_batch_is_compared_and_said() -> None:
    one, two = (
        records(
            loss=[3.0] * 50, lr=[1e-3] * 50, config={"device_batch_size": 8, "grad_accumulation": n, "world_size": 8}
        )
        for n in (4, 16)
    )
    found = compare((report(one), one), (report(two), two))
    rows = {str(row[0]): row[1:] for row in table(found, "Levels").rows}
    assert rows["samples per step"] == (256.0, 1024.0, 768.0, 4.0)
    assert table(found, "Learning rate").title == (
        "Learning rate for batch 1,024 (8 per device × 16 accumulated × 8 devices) from 0.001 at batch 256 "
        "(8 per device × 4 accumulated × 8 devices); B has 0.001"
    )


def test_one_devices_share_is_not_held_against_a_whole_batch() -> None:
    one = records(loss=[3.0] * 50, lr=[1e-3] * 50, config={"device_batch_size": 8, "world_size": 8})
    two = records(loss=[3.0] * 50, lr=[2e-3] * 50, config={"device_batch_size": 8})
    found = compare((report(one), one), (report(two), two))
    assert table(found, "Learning rate").title.endswith("B's configuration does not tell its number of devices")
    rows = {str(row[0]): row[1:] for row in table(found, "Levels").rows}
    assert rows["samples per step (B: of one device)"] == (64.0, 8.0, None, None)
    alike = compare((report(two), two), (report(two), two))
    assert ("samples per step of one device", 8.0, 8.0, 0.0, 1.0) in table(alike, "Levels").rows


def test_the_step_where_the_runs_part_is_named() -> None:
    found = compare((report(FLAT), FLAT), (report(LARGE), LARGE))
    rows = table(found, "Where they part").rows
    assert ("loss", 60, 3.0, 3.5, "any difference") in rows
    assert ("loss", 60, 3.0, 3.5, "beyond noise, lasting") in rows
    same = compare((report(FLAT), FLAT), (report(FLAT), FLAT))
    assert (
        table(same, "They part nowhere").title == "They part nowhere: loss, lr, batch_size are the same at every step"
    )


def test_settings_that_differ_are_listed() -> None:
    one, two = (records(loss=[3.0] * 10, config={"clip": 1.0, "beta2": beta}) for beta in (0.95, 0.999))
    assert table(compare((report(one), one), (report(two), two)), "Settings").rows == (("beta2", 0.95, 0.999),)


def test_a_side_without_a_run_is_refused() -> None:
    with pytest.raises(UsageError, match="must hold a run"):
        compare((Report(), Records()), (report(FLAT), FLAT))


def test_runs_without_any_common_column_still_compare() -> None:
    bare = records(grad_norm=[1.0] * 5)
    found = compare((report(bare), bare), (report(FLAT), FLAT))
    assert isinstance(found.runs[0], Run)


def test_spikes_are_counted_as_episodes_and_hard_batches_apart() -> None:
    def seen(code: str, step: int, last: int, *evidence: Measure) -> Finding:
        return Finding(code, "x", Severity.WARNING, "m", Location(run="run", step=step, last_step=last), evidence)

    findings = (
        seen("GD102", 10, 12), seen("GD102", 50, 52), seen("GD103", 40, 90, Measure("spikes", 6)),
        seen("GD106", 1, 99, Measure("rows", 3)),
    )  # fmt: skip
    found = compare((replace(report(FLAT), findings=findings), FLAT), (report(FLAT), FLAT))
    rows = {str(row[0]): row[1:] for row in table(found, "Levels").rows}
    assert rows["spikes"][:2] == (7, 0)
    assert rows["hard batches"][:2] == (3, 0)
