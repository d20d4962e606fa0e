from __future__ import annotations

import math

import pytest

from gdiag.errors import InputError
from gdiag.ingesters import hf_console, recognise
from gdiag.ingesters.reading import Options
from tests.ingesters.console_samples import given, read


def test_numbered_where_no_bar_tells_the_step() -> None:
    log = "".join(f"{{'loss': {3 - i / 10:.2f}, 'learning_rate': 5e-05, 'epoch': 0.{i}}}\n" for i in range(1, 6))
    reading = read(hf_console, log)
    assert reading.steps is not None
    assert reading.steps["step"].to_list() == [1, 2, 3, 4, 5]
    assert any("bear no step" in note for note in reading.source.notes)


def test_total_of_the_bar_tells_the_interval() -> None:
    log = "  0%| | 0/50 [00:00<?]\r" + "".join(f"{{'loss': 2.{i}, 'epoch': 0.{i}}}\n" for i in range(1, 6))
    steps = read(hf_console, log).steps
    assert steps is not None
    assert steps["step"].to_list() == [10, 20, 30, 40, 50]


def test_nan_strings_and_evaluation() -> None:
    log = (
        "{'loss': 'nan', 'grad_norm': 'nan', 'epoch': '0.1'}\n{'eval_loss': 2.5, 'eval_runtime': 3.0, 'epoch': 0.1}\n"
        "{'loss': 0.0, 'grad_norm': nan, 'epoch': 0.2}\n{'train_runtime': 20.0, 'train_loss': 1.0, 'epoch': 1.0}\n"
    )
    reading = read(hf_console, log)
    assert reading.steps is not None
    assert len(reading.steps) == 3
    assert math.isnan(reading.steps["loss"][0])
    assert reading.steps["eval_loss"].to_list() == [None, 2.5, None]
    assert reading.exit == "clean"


def test_a_single_dict_is_no_series() -> None:
    with pytest.raises(InputError, match="no series"):
        read(hf_console, "config dump\n{'loss': 11.0, 'learning_rate': 1.5e-07, 'epoch': 0.0}\n")


def test_dicts_without_an_epoch_between_bars() -> None:
    log = "{'loss': 0.329, 'reward': -2.0, 'learning_rate': 5e-05}\n" + "".join(
        f"  0%|      | {i}/13000 [00:{i:02d}<36:34:36, 10.13s/it]{{'loss': 0.2{i}, 'reward': 1.5, 'learning_rate': 5e-05}}\n"
        for i in range(1, 9)
    )
    assert recognise(given(log)) is hf_console
    steps = read(hf_console, log).steps
    assert steps is not None
    assert len(steps) == 9
    assert steps["loss"][-1] == 0.28


@pytest.mark.parametrize("step", ["step", "global_step"])
def test_dicts_that_begin_with_their_step(step: str) -> None:
    log = "".join(
        f"INFO:__main__:{{'{step}': {i}, 'loss': tensor({3 - i / 50}, device='cuda:0'), 'lr': [0.0003]}}\n"
        for i in range(40)
    )
    assert recognise(given(log)) is hf_console
    steps = read(hf_console, log).steps
    assert steps is not None
    assert steps.select("step", "loss", "lr").rows() == [(i, 3 - i / 50, 0.0003) for i in range(40)]


def test_a_step_and_a_loss_on_lines_of_their_own_are_no_line_of_torchtitan() -> None:
    log = "".join(f"---\nstep: {i}\nloss: {3 - i / 50}\nlr: 0.0003\n" for i in range(40))
    found = recognise(given(log))
    assert found is not None
    steps = found.read(given(log), Options()).steps
    assert steps is not None
    assert steps.select("step", "loss").rows() == [(i, 3 - i / 50) for i in range(40)]


def test_the_step_of_a_place_among_all() -> None:
    lines = [
        f"{{'loss': {3 - i / 100:.4f}, 'learning_rate': 1e-05, 'epoch': {i / 100:.2f}, 'global_step/max_steps': '{5 * i}/500'}}"
        for i in range(1, 31)
    ]
    reading = read(hf_console, "\n".join(lines) + "\n")
    assert reading.steps is not None
    assert reading.steps["step"].to_list() == [5 * i for i in range(1, 31)]
    assert reading.config["total_steps"] == 500
