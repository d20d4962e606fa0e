"""DLLogger: events of NVIDIA's example trainers."""

from __future__ import annotations

import json

import pytest

from gdiag.errors import InputError
from gdiag.ingesters import dllogger, recognise
from tests.ingesters.console_samples import given, read


def line(step: object, data: dict[str, object], kind: str = "LOG") -> str:
    said = {
        "timestamp": "1700000000.5",
        "datetime": "2023-11-14 22:13:20.5",
        "elapsedtime": "1.5",
        "type": kind,
        "step": step,
        "data": data,
    }
    return "DLLL " + json.dumps(said)


LINES = [
    line("PARAMETER", {"batch_size": 32, "learning_rate": 0.1}),
    line([], {"loss": {"unit": None}}, "META"),
    *(line([epoch, i], {"loss": 3.0 - epoch, "lr": 0.1}) for epoch in (0, 1) for i in range(1, 11)),
    line([1], {"val_loss": 2.5}),
    line([], {"throughput": 812.0}),
]


def test_iterations_of_epochs_are_counted_on_and_validation_stands_at_the_last() -> None:
    log = "\n".join(LINES) + "\n"
    assert recognise(given(log)) is dllogger
    steps = read(dllogger, log).steps
    assert steps is not None
    assert steps["step"].to_list() == list(range(1, 21))
    assert steps["loss"].to_list() == [3.0] * 10 + [2.0] * 10
    assert steps["eval_loss"].drop_nulls().to_list() == [2.5]
    assert steps.filter(steps["eval_loss"].is_not_null())["step"].to_list() == [20]


def test_a_torn_event_is_kept_as_a_reject() -> None:
    reading = read(dllogger, "\n".join([*LINES, LINES[8][:60]]) + "\n")
    assert reading.steps is not None
    assert reading.steps.height == 20
    assert reading.rejects is not None
    assert reading.rejects["line"].to_list() == [len(LINES) + 1]


def test_events_without_a_step_are_no_run() -> None:
    with pytest.raises(InputError, match="without a readable step"):
        read(dllogger, LINES[0] + "\n" + LINES[-1] + "\n")
