"""Keras' bars give a row an epoch, whatever is glued to them."""

from __future__ import annotations

import random

import pytest
from hypothesis import given as over
from hypothesis import settings
from hypothesis import strategies as st

from gdiag.ingesters import progress_bars, recognise
from tests.ingesters.console_samples import given, read

WARNING = "W0000 00:00:1700000000.123 cpu_allocator.cc:18] Allocation of 12 exceeds 10% of free system memory."
FULL = "312/312 [==============================] - 4s 12ms/step - "
LINES = {
    "keras 2": FULL + "loss: {v:.4f} - accuracy: 0.8125 - val_loss: {w:.4f} - val_accuracy: 0.5000",
    "with its rate": FULL + "loss: {v:.4f} - accuracy: 0.8125 - val_loss: {w:.4f} - lr: 1.0000e-04",
    "samples": "60000/60000 [==============================] - 4s 65us/sample - loss: {v:.4f} - acc: 0.8125 - val_loss: {w:.4f}",
    "verbose=2": "312/312 - 4s - loss: {v:.4f} - accuracy: 0.8125 - val_loss: {w:.4f}",
    "verbose=2 of 2.5": "312/312 - 4s - loss: {v:.4f} - accuracy: 0.8125 - val_loss: {w:.4f} - 4s/epoch - 13ms/step",
    "keras 1": " - 4s - loss: {v:.4f} - acc: 0.8125 - val_loss: {w:.4f}",
    "keras 3": "312/312 ━━━━━━━━━━━━━━━━━━━━ 4s 12ms/step - accuracy: 0.8125 - loss: {v:.4f} - val_accuracy: 0.5000 - val_loss: {w:.4f}",
    "keras 3, verbose=2": "312/312 - 4s - 12ms/step - accuracy: 0.8125 - loss: {v:.4f} - val_loss: {w:.4f}",
}


def fit(
    form: str, count: int, *, start: int = 1, saves: bool = False
) -> tuple[list[str], list[tuple[int, float, float]]]:
    """The lines of some epochs and the (epoch, loss, evaluation loss) that they say."""
    lines: list[str] = []
    said: list[tuple[int, float, float]] = []
    for epoch in range(start, start + count):
        v, w = round(4 / epoch, 4), round(5 / epoch, 4)
        lines += [f"Epoch {epoch}/{start + count - 1}", LINES[form].format(v=v, w=w)]
        lines += [f"Epoch {epoch:05d}: val_loss improved from 9.0 to {w:.4f}, saving model to m.h5"] * saves
        said.append((epoch, v, w))
    return lines, said


def told(log: str) -> list[tuple[int, float, float]]:
    assert recognise(given(log)) is progress_bars
    steps = read(progress_bars, log).steps
    assert steps is not None
    return steps.select("step", "loss", "eval_loss").rows()


@settings(max_examples=100, deadline=None)
@over(
    st.sampled_from(list(LINES)), st.sampled_from(["", " ", WARNING]), st.integers(0, 120), st.integers(0, 99), st.booleans()
)  # fmt: skip
def test_lost_newlines_lose_no_epoch(form: str, between: str, lost: int, seed: int, saves: bool) -> None:
    lines, said = fit(form, 60, saves=saves)
    at = {*random.Random(seed).sample(range(1, len(lines)), min(lost, len(lines) - 2))}
    log = lines[0] + "".join((between if i in at else "\n") + line for i, line in enumerate(lines[1:], 1)) + "\n"
    assert told(log) == said


def test_two_trainings_in_one_log_keep_their_rows() -> None:
    lines, said = fit("keras 2", 20)
    assert told("\n".join(lines + lines) + "\n") == said + said


def test_epochs_of_one_name_are_counted() -> None:
    lines = [line for _ in range(12) for line in fit("keras 2", 1)[0]]
    reading = read(progress_bars, "\n".join(lines) + "\n")
    assert reading.steps is not None
    assert reading.steps["step"].to_list() == [*range(1, 13)]
    assert any("every epoch is called 1" in note for note in reading.source.notes)


def test_bars_of_evaluate_take_no_epochs_place() -> None:
    lines, said = fit("keras 2", 12)
    other = "79/79 [==============================] - 0s 2ms/step - loss: 9.5000 - accuracy: 0.1000"
    reading = read(progress_bars, "\n".join([other, *lines, other]) + "\n")
    assert reading.steps is not None
    assert reading.steps.select("step", "loss", "eval_loss").rows() == said
    assert any("2 full bars of other lengths" in note for note in reading.source.notes)


def test_epochs_without_a_full_bar_are_counted() -> None:
    lines, said = fit("keras 2", 12)
    lines[9] = lines[9][:50]
    reading = read(progress_bars, "\n".join(lines) + "\n")
    assert reading.steps is not None
    assert reading.steps.select("step", "loss", "eval_loss").rows() == [row for row in said if row[0] != 5]
    assert any("epochs without a full bar, which are no rows: 1 (epoch 5)" in note for note in reading.source.notes)


def test_minutes_left_and_a_bar_drawn_full_before_the_evaluation() -> None:
    lines = []
    for epoch in range(1, 6):
        lines += [
            f"Epoch {epoch}/5",
            f" 12/312 ━──────────────────── 1:02 12ms/step - loss: {9 / epoch:.4f}",
            f"312/312 [==============================] - ETA: 0s - loss: {4 / epoch:.4f}",
            f"312/312 [==============================] - 63s 12ms/step - loss: {4 / epoch:.4f} - val_loss: {5 / epoch:.4f}",
        ]
    assert told("\r".join(lines) + "\n") == [(e, round(4 / e, 4), round(5 / e, 4)) for e in range(1, 6)]


@pytest.mark.parametrize(
    "line",
    [
        "782/782 [==============================] - 12s 15ms/step - loss: {v} - accuracy: 0.5 - val_loss: {w}",
        "\x1b[1m782/782\x1b[0m \x1b[32m━━━━━━━━━━━━━━━━━━━━\x1b[0m \x1b[1m12s\x1b[0m 15ms/step - acc: 0.5 - loss: {v} - val_loss: {w}",
        "782/782 - 12s - 15ms/step - loss: {v} - acc: 0.5 - val_loss: {w}",
        " - 12s - loss: {v} - acc: 0.5000e+00 - val_loss: {w}",
    ],
)
def test_keras_epochs(line: str) -> None:
    log = "".join(
        f"Epoch {i}/9\n  3/782 [>......] - ETA: 8:10 - loss: 9.9 - accuracy: 0.5\r" * ("ETA" in line or "===" in line)
        + f"Epoch {i}/9\n" * ("===" not in line)
        + line.format(v=4 / i, w=5 / i)
        + "\n"
        for i in range(1, 7)
    )
    assert recognise(given(log)) is progress_bars
    reading = read(progress_bars, log)
    assert reading.steps is not None
    assert reading.steps["step"].to_list() == list(range(1, 7))
    assert reading.steps["loss"].to_list() == pytest.approx([4 / i for i in range(1, 7)], abs=1e-3)
    assert reading.steps["eval_loss"].to_list() == pytest.approx([5 / i for i in range(1, 7)], abs=1e-3)


def keras(redraw: str, *, epochs: int = 4, last: int = 12, lost: str = "0.9000") -> str:
    """A log of epochs of 12 bars drawn over with `redraw`, of which the last epoch has `last`, its loss `lost`."""
    out = []
    for epoch in range(1, epochs + 1):
        out.append(f"Epoch {epoch}/{epochs}\n")
        for at in range(1, (last if epoch == epochs else 12) + 1):
            loss = lost if epoch == epochs else f"{4 / epoch + (12 - at) / 100:.4f}"
            left = "ETA: 1s" if at < 12 else "4s 12ms/step"
            out.append(f"{redraw}{at}/12 [{'=' * at}{'.' * (12 - at)}] - {left} - accuracy: 0.5000 - loss: {loss}")
        out.append(f" - val_loss: {epoch}.5000\n")
    return "".join(out)


@pytest.mark.parametrize("redraw", ["\r", "\b" * 70, ""])
@pytest.mark.parametrize("epoch_ends", ["\n", ""])
def test_glued_keras_bars_lose_no_epoch(redraw: str, epoch_ends: str) -> None:
    log = keras(redraw).replace("\n", epoch_ends) if not epoch_ends else keras(redraw)
    reading = read(progress_bars, log + "\n")
    assert reading.steps is not None
    assert reading.steps["step"].to_list() == [1, 2, 3, 4]
    assert reading.steps["loss"].to_list() == pytest.approx([4, 2, 4 / 3, 0.9], abs=1e-4)
    assert reading.steps["eval_loss"].to_list() == [1.5, 2.5, 3.5, 4.5]


def test_a_keras_epoch_that_was_not_finished_keeps_its_last_bar() -> None:
    reading = read(progress_bars, keras("\r", last=5, lost="nan").rsplit(" - val_loss", 1)[0])
    assert reading.steps is not None
    assert reading.steps["step"].to_list() == [1, 2, 3, 4]
    assert reading.steps["loss"].is_nan().to_list() == [False, False, False, True]
    assert any("the last one was not finished" in note for note in reading.source.notes)
