from __future__ import annotations

import pytest

from gdiag.errors import InputError
from gdiag.ingesters import console_generic, leading_steps, litgpt, maxtext, recognise
from tests.ingesters.console_samples import FORMATS, given, losses, read

VALUES = losses(24)


@pytest.mark.parametrize(
    "form",
    [
        ("[{step}] loss 0.{step} / loss {loss} / b nan"),
        ("Step {step}: loss={loss} lr=1e-4"),
        ("foo.py:12 | iteration = {step}, training loss = {loss}, took 3.4 s"),
        ("2026-01-01 10:00:{step:02d},123 trainer INFO global_step: {step} loss: {loss} grad_norm: 1.5"),
        ("Epoch: {step}  Loss: {loss}  Accuracy: 91.2%"),
        ("step {step} - loss {loss} - moving ave loss 3.21"),
        ("epoch: 0, iter: {step}, lr: 0.000001, 'loss': {loss}, 'acc': 0.0, time: 2.346"),
        (
            "Speed 2178.40 samples/sec   Loss {loss}   LearningRate 0.001000   Epoch: 0   Global Step: {step}   Scale:  0"
        ),
    ],
)
def test_unknown_forms(form: str) -> None:
    log = "starting\n" + "".join(form.format(step=i, loss=v) + "\n" for i, v in enumerate(VALUES, 1))
    assert recognise(given(log)) is console_generic
    reading = read(console_generic, log)
    assert reading.steps is not None
    assert reading.steps["step"].to_list() == list(range(1, 25))
    if not form.startswith("["):
        assert reading.steps["loss"].to_list() == pytest.approx(VALUES)
    assert any("fairly sure" in note and "unknown program" in note for note in reading.source.notes)


@pytest.mark.parametrize(
    "form",
    [
        "train | inner iter:   {inner}/  8 | ppo epoch:  2/ 4 | global iter:  {step}/ 5000| tot_loss: {loss} | rl_loss: -0.04",
        "worker  | [{rank}] Finished training it {step}/150 of epoch 0, 439.75 ms/it, loss {loss}, accuracy 74.972 %",
        "[{rank}] finished it {step}/150 of epoch 0, loss {loss}",
    ],
)
def test_the_counter_of_the_whole_run_is_the_step(form: str) -> None:
    log = "".join(form.format(step=i, inner=i % 3, rank=i % 2, loss=v) + "\n" for i, v in enumerate(VALUES, 1))
    steps = read(console_generic, log).steps
    assert steps is not None
    assert steps["step"].to_list() == list(range(1, 25))
    assert steps["loss"].to_list() == pytest.approx(VALUES)


def test_steps_that_begin_again_every_epoch_are_counted_on() -> None:
    lines = [
        f"Epoch [{e}/2], Step [{s}/600], Loss: {VALUES[(e - 1) * 6 + s // 100 - 1]}"
        for e in (1, 2)
        for s in range(100, 700, 100)
    ]
    reading = read(console_generic, "\n".join(lines) + "\n")
    assert reading.steps is not None
    assert reading.steps["step"].to_list() == list(range(100, 1300, 100))
    assert reading.steps["loss"].to_list() == pytest.approx(VALUES[:12])


def test_steps_of_epochs_that_are_counted_from_zero_meet_no_other() -> None:
    lines = [f"[INFO] Epoch {e} Iter {s} loss {3 - e - s / 10:.2f} time 0.5" for e in range(3) for s in range(10)]
    reading = read(console_generic, "\n".join(lines) + "\n")
    assert reading.steps is not None
    assert reading.steps["step"].to_list() == list(range(30))


def test_places_in_epochs_and_lines_of_evaluation() -> None:
    lines = []
    for epoch in (7, 8):
        lines += [f"Train | Epoch {epoch} | {at}/332 | 0.89 it/sec | Loss {at / 1000 + epoch}" for at in (83, 166, 249)]
        lines += [f"Train Summary | Epoch {epoch} | Loss=9.0", f"Valid Summary | Epoch {epoch} | Loss={epoch + 0.5}"]
    steps = read(console_generic, "\n".join(lines) + "\n").steps
    assert steps is not None
    train = steps.filter(steps["loss"].is_not_null())
    assert train["step"].to_list() == [83, 166, 249, 415, 498, 581]
    assert train["loss"].to_list() == pytest.approx([7.083, 7.166, 7.249, 8.083, 8.166, 8.249])
    valid = steps.filter(steps["eval_loss"].is_not_null())
    assert valid["step"].to_list() == [249, 581]
    assert valid["eval_loss"].to_list() == [7.5, 8.5]


@pytest.mark.parametrize(
    "form",
    [
        "Train: {epoch} [{at:4d}/1251 ({at:3d}%)]  Loss: {loss} (6.94)  Time: 0.423s, 2420.25/s  LR: 1.000e-06  Data: 0.01 (0.06)",
        "2023-01-05 16:34:37,748   INFO  Train:    {epoch}/30 ( 33%) [{at:4d}/1251 ( 15%)]  Loss: {loss} (81.7)  LR: 1.3e-04",
        "Epoch: [{epoch}]  [{at:4d}/1251]  eta: 1:02:03  lr: 0.0001  loss: {loss} (6.5)  time: 0.5123  data: 0.0010",
        "Epoch: [{epoch}][{at:4d}/1251]\tTime  0.2 ( 0.3)\tLoss {loss} (6.9)\tAcc@1 0.0 (0.1)",
    ],
)
def test_batches_of_epochs(form: str) -> None:
    places = [(epoch, at) for epoch in (3, 4) for at in range(0, 1251, 50)]
    lines = [form.format(epoch=e, at=at, loss=VALUES[i % 24]) for i, (e, at) in enumerate(places)]
    test = "Test: [  {}/48]  Time: 0.1 (0.3)  Loss:  6.86 (6.85)"
    log = "\n".join([*lines[:26], *(test.format(batch) for batch in (0, 10, 48)), *lines[26:]]) + "\n"
    assert recognise(given(log)) is console_generic
    steps = read(console_generic, log).steps
    assert steps is not None
    assert steps.drop_nulls("eval_loss").select("step", "eval_loss").rows() == [(1250, 6.85)]
    steps = steps.drop_nulls("loss")
    assert steps["step"].to_list() == [(e - 3) * 1251 + at for e, at in places]
    assert steps["loss"].to_list() == pytest.approx([VALUES[i % 24] for i in range(len(places))])


def test_a_count_of_steps_per_epoch_is_no_step() -> None:
    lines = [
        line
        for epoch in range(40, 46)
        for line in (
            f"Epoch {epoch} |   Training | Elapsed Time: 2:40:25 | Steps: 6275 | Loss: {5 - epoch / 20}",
            f"Epoch {epoch} | Validation | Elapsed Time: 0:15:08 | Steps: 784 | Loss: {4 - epoch / 20} | Dataset: dev.csv",
        )
    ]
    steps = read(console_generic, "\n".join(lines) + "\n").steps
    assert steps is not None
    train = steps.filter(steps["loss"].is_not_null())
    assert train["step"].to_list() == list(range(40, 46))
    assert steps["eval_loss"].drop_nulls().to_list() == pytest.approx([4 - e / 20 for e in range(40, 46)])


def test_nan_filled_up_with_letters_is_nan() -> None:
    lines = [f"epoch: [9/20], global_step: {s}, lr: 0.0005, loss: nanxxx, ips: 423.9 samples/s" for s in (10, 20, 30)]
    steps = read(console_generic, "\n".join(lines) + "\n").steps
    assert steps is not None
    assert steps["loss"].is_nan().all()


def test_a_number_that_turns_nan_stands_in_for_a_loss_nobody_knows() -> None:
    lines = [f"(epoch: 1, iters: {i}00, time: 0.3) D_A: 0.{i} G_A: {'nan' if i > 4 else 1.5}" for i in range(1, 9)]
    reading = read(console_generic, "\n".join(lines) + "\n")
    assert reading.steps is not None
    assert reading.steps["loss"].is_nan().to_list() == [False] * 4 + [True] * 4
    assert any("G_A is read as the loss" in note for note in reading.source.notes)
    finite = read(console_generic, "\n".join(lines[:4]) + "\n")
    assert finite.steps is not None
    assert "loss" not in finite.steps.columns


def test_a_name_before_a_comma_does_not_name_the_number_behind_it() -> None:
    lines = "".join(f" {i}: 15.{i}, 16.{i} avg loss, 0.001 rate, 3.1 seconds, {64 * i} images\n" for i in range(1, 9))
    assert recognise(given("Loaded: 0.04 seconds\n" + lines)) in (None, leading_steps)
    with pytest.raises(InputError):
        read(leading_steps, lines)


def test_a_restart_inside_an_epoch_stays_a_restart() -> None:
    lines = [f"Epoch [1/2], Step [{s}/600], Loss: 2.5" for s in (100, 200, 300, 100, 200, 300)]
    steps = read(console_generic, "\n".join(lines) + "\n").steps
    assert steps is not None
    assert steps["step"].to_list() == [100, 200, 300, 100, 200, 300]


def test_without_a_known_metric_it_says_that_it_is_not_sure() -> None:
    log = "".join(
        f"steps: {700 * i}, episodes: {10 * i}, mean episode reward: 2{i}.1, time: 1.8\n" for i in range(1, 9)
    )
    reading = read(console_generic, log)
    assert any("not sure" in note for note in reading.source.notes)
    assert console_generic.recognise(given(log)) < 0.2


@pytest.mark.parametrize(
    "prose",
    [
        "In step 3 we did 4 things.\nThe step 5 of 10 is done: 3 apples.\nstep 7 has 3 bugs\nAt step 5, 4 cats met 5 dogs\n",
        "# Step 1: install 3 packages\n# Step 2: run 4 commands\n# Step 3: wait 5 minutes\n# Step 4: done\n" * 3,
        "batch 1\nbatch 2\nbatch 3\nbatch 4\n",
        "loss: 3\nloss: 4\nloss: 5\n",
    ],
)
def test_prose_is_not_swallowed(prose: str) -> None:
    assert recognise(given(prose)) is None
    with pytest.raises(InputError):
        read(console_generic, prose)


def test_maxtext_first_times_and_evaluation() -> None:
    _, line = FORMATS["maxtext"]
    log = (
        "".join(line(i, v) + "\n" for i, v in enumerate(VALUES))
        + "eval metrics after step: 23, loss=2.9, total_weights=65536\n"
    )
    steps = read(maxtext, log).steps
    assert steps is not None
    assert steps["step_time"].to_list()[:3] == [None, None, 12.2]
    assert steps["eval_loss"].drop_nulls().to_list() == [2.9]


def test_litgpt_without_marks() -> None:
    log = "".join(
        f"Epoch 1 | iter {2 * i:3d} step {i} | loss train: {v:6.3f} | iter time: {28.05:8.2f} ms\n"
        for i, v in enumerate(VALUES, 1)
    )
    steps = read(litgpt, log).steps
    assert steps is not None
    assert steps["step"].to_list() == list(range(1, 25))
    assert steps["step_time"].to_list() == [pytest.approx(0.02805)] * 24
