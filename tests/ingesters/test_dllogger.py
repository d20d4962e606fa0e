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


@pytest.mark.parametrize(
    ("said", "steps"),
    [
        ([[epoch, 100] for epoch in range(4)], [100, 200, 300, 400]),
        ([[epoch, i] for epoch in range(3) for i in range(5)], list(range(15))),
        ([[epoch, i, 5] for epoch in range(1, 4) for i in range(1, 6)], list(range(1, 16))),
        ([[epoch, 50 * epoch + i] for epoch in range(3) for i in range(10, 60, 10)], list(range(10, 160, 10))),
        ([[0, 10], [0, 20], [1, 20], [1, 30]], [10, 20, 20, 30]),
        ([[0, 1], [0, 2], [1, 1], [0, 2], [1, 1], [1, 2]], [1, 2, 3, 2, 3, 4]),
        ([5, 10, 15], [5, 10, 15]),
        ([[0], [1], [2]], [0, 1, 2]),
    ],
    ids=[
        "one an epoch",
        "from 0",
        "of how many",
        "whole run",
        "whole run, met twice",
        "resumed",
        "number",
        "epochs alone",
    ],
)
def test_steps_of_positions(said: list[object], steps: list[int]) -> None:
    positions = [at for at in map(dllogger._position, said) if at is not None]
    assert dllogger._steps(positions) == steps


def test_an_iteration_an_epoch_makes_rows_of_their_own() -> None:
    steps = read(dllogger, "\n".join(line([epoch, 100], {"loss": 3.0 - epoch / 9}) for epoch in range(9)) + "\n").steps
    assert steps is not None
    assert steps["step"].to_list() == list(range(100, 1000, 100))


def test_settings_are_kept_and_the_summary_stands_at_the_last_step() -> None:
    summary = [line([], {"loss": 9.0}), line("PARAMETER", {"seed": 7, "batch_size": 64})]
    reading = read(dllogger, "\n".join([*LINES[:-1], *summary]) + "\n")
    assert reading.config == {"batch_size": 32, "lr": 0.1, "seed": 7}
    assert reading.steps is not None
    assert reading.steps["loss"].to_list() == [3.0] * 10 + [2.0] * 10
    summed = read(dllogger, LINES[3] + "\n" + line([], {"grad_norm": 2.0}) + "\n").steps
    assert summed is not None
    assert summed.select("step", "grad_norm").rows() == [(2, 2.0)]


def test_a_torn_event_is_kept_as_a_reject() -> None:
    reading = read(dllogger, "\n".join([*LINES, LINES[8][:60]]) + "\n")
    assert reading.steps is not None
    assert reading.steps.height == 20
    assert reading.rejects is not None
    assert reading.rejects["line"].to_list() == [len(LINES) + 1]


def test_events_without_a_step_are_no_run() -> None:
    with pytest.raises(InputError, match="without a readable step"):
        read(dllogger, LINES[0] + "\n" + LINES[-1] + "\n")


def test_events_that_run_together_and_steps_as_words_are_read() -> None:
    events = [line([0, i], {"loss": 3.0}) + line([0, i], {"lr": 0.1}) for i in range(1, 5)]
    steps = read(dllogger, "\n".join([*events, line("7", {"loss": 2.0})]) + "\n").steps
    assert steps is not None
    assert steps["step"].to_list() == [1, 2, 3, 4, 7]
    assert steps["lr"].to_list() == [0.1] * 4 + [None]
