"""Dialects of consoles and tables that a general reader or a format has to take in its stride; every file is made here."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gdiag.ingesters import load
from gdiag.schema import Records

LOSS = [4 - i / 10 for i in range(12)]
RUNNING = [(i + 1) * 600.5 for i in range(12)]


def read(tmp_path: Path, lines: list[str], name: str = "run.log") -> Records:
    (tmp_path / name).write_text("".join(line + "\n" for line in lines))
    return load([tmp_path / name])


def made(form: Callable[[int, float], str]) -> list[str]:
    return [form(i, loss) for i, loss in enumerate(LOSS)]


@pytest.mark.parametrize(
    ("form", "evaluated"),
    [
        (lambda i, x: f"[{i}]\ttrain-logloss:{x:.4f}\tvalid-logloss:{x + 0.5:.4f}", True),
        (lambda i, x: f"[{i}]\ttraining's binary_logloss: {x:.4f}\tvalid_1's binary_logloss: {x + 0.5:.4f}", True),
        (lambda i, x: f"[{i}]\ttrain-rmse:{x:.4f}", False),
    ],
    ids=["xgboost", "lightgbm", "rmse"],
)
def test_rounds_of_boosting(tmp_path: Path, form: Callable[[int, float], str], evaluated: bool) -> None:
    records = read(tmp_path, made(form))
    assert records.steps["step"].to_list() == [*range(12)]
    assert records.steps["loss"].to_list() == pytest.approx(LOSS)
    if evaluated:
        assert records.steps["eval_loss"].to_list() == pytest.approx([x + 0.5 for x in LOSS])


@pytest.mark.parametrize(
    ("form", "seconds"),
    [
        (lambda i, x: f"global step {i}: loss = {x:.4f} (0.{50 + i} sec/step)", [0.5 + i / 100 for i in range(12)]),
        (lambda i, x: f"global step {i}, loss: {x:.4f}, speed: {2 + i / 10:.2f} step/s", [1 / (2 + i / 10) for i in range(12)]),
    ],
    ids=["seconds", "steps"],
)  # fmt: skip
def test_a_pace_names_itself_by_its_unit(
    tmp_path: Path, form: Callable[[int, float], str], seconds: list[float]
) -> None:
    records = read(tmp_path, made(form))
    assert records.steps["loss"].to_list() == pytest.approx(LOSS)
    assert records.steps["step_time"].to_list() == pytest.approx(seconds)


def test_the_programs_own_time_stands_beside_the_clock_of_the_line(tmp_path: Path) -> None:
    lines = [
        f"2026-02-18 {i:02d}:38:30,706 [INFO] Epoch {i}, Time {RUNNING[i]}s, Loss {LOSS[i]:.4f}" for i in range(12)
    ]
    steps = read(tmp_path, lines).steps
    assert steps["elapsed"].to_list() == pytest.approx(RUNNING)
    assert steps["time"][1] - steps["time"][0] == 3600
    assert steps["step_time"].drop_nulls().to_list() == pytest.approx([600.5] * 11)


@pytest.mark.parametrize("rows", [3, 5, 12])
def test_a_running_clock_is_told_from_few_rows(tmp_path: Path, rows: int) -> None:
    lines = ["epoch,time,train/box_loss", *(f"{i + 1},{RUNNING[i]},{LOSS[i]}" for i in range(rows))]
    assert read(tmp_path, lines, "results.csv").steps["elapsed"].to_list() == RUNNING[:rows]


def test_times_of_single_steps_are_no_clock(tmp_path: Path) -> None:
    lines = ["epoch,time,train/box_loss", *(f"{i + 1},{600.5 + i % 3},{LOSS[i]}" for i in range(12))]
    assert "elapsed" not in read(tmp_path, lines, "results.csv").steps.columns


@pytest.mark.parametrize(
    "form", ["[{}]", "( {} )", "tensor({}, device='cuda:0')", "tensor({})", "array([{}])", "np.float32({})", "[{},]"]
)
def test_arrays_of_one_number_are_that_number(tmp_path: Path, form: str) -> None:
    cells = ['"' + form.format(x) + '"' for x in (0.5, 1e-05, float("nan"), -3.25)]
    records = read(tmp_path, ["step,loss,lr", *(f"{i},1.5,{cell}" for i, cell in enumerate(cells))], "run.csv")
    assert str(records.steps["lr"].to_list()) == "[0.5, 1e-05, nan, -3.25]"
    assert records.rejects.height == 0


@pytest.mark.parametrize("cell", ["[0.5 0.25]", "[0.5, 0.25]", "[]", "tensor([1, 2])", "f(x)"])
def test_other_arrays_are_rejects(tmp_path: Path, cell: str) -> None:
    records = read(tmp_path, ["step,loss,lr", *(f'{i},1.5,"{cell if i == 2 else 0.1}"' for i in range(6))], "run.csv")
    assert records.rejects.height == 1


def test_summaries_of_espnets_epochs(tmp_path: Path) -> None:
    lines = []
    for epoch in (1, 2):
        lines += [
            f"{epoch}epoch:train:{at + 1}-{at + 500}batch: loss=12.5, iter_time=0.02, train_time=0.03"
            for at in (0, 500)
        ]
        lines += [
            f"epoch_summary:{epoch}epoch:train: loss=8.5",
            f"epoch_summary:{epoch}epoch:valid: loss={8.5 - epoch} cer=18.4",
        ]
    steps = read(tmp_path, lines).steps
    assert steps.drop_nulls("eval_loss").select("step", "eval_loss").rows() == [(1000, 7.5), (2000, 6.5)]
    assert steps["loss"].drop_nulls().to_list() == [12.5] * 4


def test_the_first_form_of_fairseq(tmp_path: Path) -> None:
    lines = []
    for epoch in (1, 2):
        lines += [
            f"| epoch {epoch:03d}  {at} / 3000 loss={5 - epoch} (4.5), wps=962, bsz=32, lr=0.001, gnorm=2.1"
            for at in (1000, 2000)
        ]
        lines += [
            f"| epoch {epoch:03d} | train loss 1.44 | train ppl 2.72 | words/s 961 | lr 0.001000 | gnorm 2.1113",
            f"| epoch {epoch:03d} | valid on 'valid' subset  1000 / 1311 loss=9.60",
            f"| epoch {epoch:03d} | valid on 'valid' subset | valid loss {3 - epoch} | valid ppl 3.83",
        ]
    steps = read(tmp_path, lines).steps
    assert steps.drop_nulls("loss").select("step", "loss").rows() == [(1000, 4), (2000, 4), (4000, 3), (5000, 3)]
    assert steps.drop_nulls("eval_loss").select("step", "eval_loss").rows() == [(2000, 2), (5000, 1)]


def test_evaluation_named_behind_the_epoch(tmp_path: Path) -> None:
    lines = []
    for i, loss in enumerate(LOSS):
        lines += [f"Epoch {i} | {at} of 30 | loss={loss:.3f}" for at in (10, 20)]
        lines.append(f"Epoch {i} | valid | 7 of 7 | loss={loss + 1:.3f}")
    steps = read(tmp_path, lines).steps
    assert steps["eval_loss"].drop_nulls().to_list() == pytest.approx([x + 1 for x in LOSS])
    assert max(steps["loss"].drop_nulls()) == 4


def test_a_trainer_that_prints_evaluations_alone(tmp_path: Path) -> None:
    lines = [f"{{'eval_loss': {loss:.3f}, 'eval_runtime': 9.2, 'epoch': {i + 1}.0}}" for i, loss in enumerate(LOSS)]
    steps = read(tmp_path, lines).steps
    assert steps["step"].to_list() == [*range(1, 13)]
    assert steps["eval_loss"].to_list() == pytest.approx(LOSS)


def test_maxtexts_main_loss(tmp_path: Path) -> None:
    lines = made(lambda i, x: f"completed step: {i}, seconds: 50.0, TFLOP/s/device: 56.0, main_model_loss: {x:.3f}")
    assert read(tmp_path, lines).steps["loss"].to_list() == pytest.approx(LOSS)
