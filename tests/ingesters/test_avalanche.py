"""Experiences of continual learning are one training: their epochs are counted on."""

from __future__ import annotations

from pathlib import Path

import pytest

from gdiag.errors import InputError
from gdiag.ingesters import avalanche, load, recognise
from tests.ingesters.console_samples import given, read


def console(experiences: int, epochs: int, *, evaluated: bool = True, bars: bool = False, stream: bool = True) -> str:
    """What a strategy prints that trains on some experiences and evaluates all behind each."""
    out = []
    for x in range(experiences):
        out += [
            "-- >> Start of training phase << --",
            f"-- Starting training on experience {x} (Task 0) from train stream --",
        ]
        for e in range(epochs):
            out += ["\r".join(f"{k}%|{'█' * k}| {k}/100 [00:00<00:05, 20.1it/s]" for k in range(6))] * bars
            out += [
                f"Epoch {e} ended.",
                f"\tLoss_Epoch/train_phase/train_stream/Task000 = {loss(x, e):.4f}",
                f"\tLoss_MB/train_phase/train_stream/Task000 = {loss(x, e) / 2:.4f}",
                f"\tTop1_Acc_Epoch/train_phase/train_stream/Task000 = {0.5 + e / 100:.4f}",
            ]
        out.append("-- >> End of training phase << --")
        if evaluated:
            out.append("-- >> Start of eval phase << --")
            for y in range(experiences):
                out += [
                    f"-- Starting eval on experience {y} (Task 0) from test stream --",
                    f"> Eval on experience {y} (Task 0) from test stream ended.",
                    f"\tLoss_Exp/eval_phase/test_stream/Task000/Exp{y:03d} = {1 + y + x:.4f}",
                ]
            out.append("-- >> End of eval phase << --")
            out += [f"\tLoss_Stream/eval_phase/test_stream/Task000 = {3 + x:.4f}"] * stream
    return "\n".join(out) + "\n"


def loss(experience: int, epoch: int) -> float:
    return round(2.5 / (epoch + 1) + 0.1 * experience, 4)


@pytest.mark.parametrize("bars", [False, True])
@pytest.mark.parametrize(("experiences", "epochs"), [(5, 4), (3, 12), (10, 1), (1, 20)])
def test_experiences_are_one_run(tmp_path: Path, experiences: int, epochs: int, bars: bool) -> None:
    log = console(experiences, epochs, bars=bars)
    assert recognise(given(log)) is avalanche
    (tmp_path / "run.log").write_text(log)
    steps = load([tmp_path / "run.log"]).steps
    assert steps["run"].n_unique() == 1
    trained = steps.drop_nulls("loss")
    assert trained["step"].to_list() == [*range(1, experiences * epochs + 1)]
    assert trained["loss"].to_list() == [loss(x, e) for x in range(experiences) for e in range(epochs)]
    assert trained["accuracy"].to_list() == pytest.approx(
        [0.5 + e / 100 for _ in range(experiences) for e in range(epochs)]
    )
    evaluated = steps.drop_nulls("eval_loss").select("step", "eval_loss").rows()
    assert evaluated == [(epochs * (x + 1), 3.0 + x) for x in range(experiences)]


def test_without_a_stream_s_loss_the_mean_of_its_experiences() -> None:
    steps = read(avalanche, console(3, 4, stream=False)).steps
    assert steps is not None
    assert steps["eval_loss"].drop_nulls().to_list() == [2.0, 3.0, 4.0]


def test_epochs_without_a_loss_are_refused() -> None:
    log = console(2, 3).replace("Loss_Epoch", "Time_Epoch")
    assert avalanche.recognise(given(log)) == 0.0
    with pytest.raises(InputError, match="no epoch"):
        read(avalanche, log)


def test_another_program_s_epochs_are_none() -> None:
    assert avalanche.recognise(given("Epoch 1 ended.\nloss = 3\n" * 20)) == 0.0
