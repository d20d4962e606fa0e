from __future__ import annotations

import pytest

from gdiag.errors import InputError
from gdiag.ingesters import progress_bars, recognise
from tests.ingesters.console_samples import given, read


def test_epochs_are_counted_on_and_evaluation_is_told_apart() -> None:
    log = ""
    for epoch in range(3):
        for at in range(21):
            done = f"Epoch {epoch}: {5 * at:3d}%|{'█' * (at // 2):<10}| {at}/20 [00:{at:02d}<00:09,  1.00it/s"
            log += f"\r{done}, loss={9 - epoch - at / 20:.3f}, v_num=7]" if at else f"\r{done}]"
        for at in range(1, 5):
            log += f"\rValidation: {25 * at}%|{'█' * at}| {at}/4 [00:0{at}<00:00, 1.0it/s, loss={at}.5]"
        log += "\n"
    assert recognise(given(log)) is progress_bars
    reading = read(progress_bars, log)
    assert reading.steps is not None
    train = reading.steps.filter(reading.steps["loss"].is_not_null())
    assert train["step"].to_list() == list(range(1, 61))
    assert train["loss"][0] == pytest.approx(8.95)
    assert train["loss"][-1] == 6.0
    valid = reading.steps.filter(reading.steps["eval_loss"].is_not_null())
    assert valid["step"].to_list() == [20, 40, 60]
    assert valid["eval_loss"].to_list() == [4.5, 4.5, 4.5]
    assert any("every epoch" in note for note in reading.source.notes)


def test_evaluation_shown_until_the_next_one_counts_once() -> None:
    log = "".join(
        f"{at}%|#| {at}/40 [00:{at:02d}<00:09, 1.0it/s, loss={9 - at / 20:.3f}, val_loss={3 - at // 10}]\n"
        for at in range(1, 41)
    )
    steps = read(progress_bars, log).steps
    assert steps is not None
    valid = steps.filter(steps["eval_loss"].is_not_null())
    assert valid["step"].to_list() == [1, 10, 20, 30, 40]
    assert valid["eval_loss"].to_list() == [3, 2, 1, 0, -1]


def test_a_bar_that_is_not_full_begins_again_after_a_restart() -> None:
    lines = [f"{at}%|#| {at}/100 [00:{at:02d}<00:09,  1.0it/s, loss=2.5]" for at in (*range(1, 31), *range(20, 41))]
    steps = read(progress_bars, "\n".join(lines) + "\n").steps
    assert steps is not None
    assert steps["step"].max() == 40


@pytest.mark.parametrize(
    "bars", [("| 20/20 [00:06<00:00, 1.6it/s, loss={v}]"), ("Loss: {v}: : 11it [00:06,  1.59it/s]")]
)
def test_full_bars_alone_are_a_row_each(bars: str) -> None:
    log = "".join(f"Going into epoch {i}\n" + bars.format(v=5 - i / 2) + "\n" for i in range(1, 7))
    log = log.replace("00:06", "00:09", 1)
    steps = read(progress_bars, log).steps
    assert steps is not None
    assert steps["loss"].drop_nulls()[-1] == 2.0


def test_bars_without_a_metric_are_refused() -> None:
    log = "".join(f"Epoch 0: {i}%|█| {i}/99 [3:12:36<125:24:04,  0.32it/s, v_num=35a4, ...]\n" for i in range(5))
    with pytest.raises(InputError, match="without a metric"):
        read(progress_bars, log)


def test_the_loss_of_the_step_and_not_the_mean_of_twenty_beside_it() -> None:
    lines = [
        f"Epoch 0:   1%|          | {i}/77225 [00:{i:02d}<878:01:48, 41.36s/it, loss=3.1, v_num=, reduced_train_loss={3 - i / 100:.3f}, global_step={i}.0]"
        for i in range(1, 31)
    ]
    steps = read(progress_bars, "\n".join(lines) + "\n").steps
    assert steps is not None
    assert steps["loss"].to_list() == pytest.approx([3 - i / 100 for i in range(1, 31)])
