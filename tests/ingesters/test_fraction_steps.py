"""Files of one run that count epochs in different fractions."""

from __future__ import annotations

from pathlib import Path

import pytest

from gdiag.ingesters import load


def table(path: Path, head: str, at: list[float], level: float) -> None:
    path.parent.mkdir(exist_ok=True)
    rows = [f"{x:.10g},{level - x / 10 + (i * 7919 % 13) / 1000:.4f}" for i, x in enumerate(at)]
    path.write_text("\n".join([head, *rows]) + "\n")


def placed(folder: Path) -> dict[float, tuple[int, bool]]:
    """Epoch → step and whether an evaluation stands there."""
    steps = load([folder]).steps
    return {e: (s, v is not None) for e, s, v in steps.select("epoch", "step", "eval_loss").rows()}


@pytest.mark.parametrize("counter", ["epoch", "step"])
@pytest.mark.parametrize(
    ("train", "every", "unit"), [(0.1, 0.5, 0.1), (0.1, 1.0, 0.1), (0.25, 0.1, 0.05), (0.5, 0.1, 0.1)]
)
def test_evaluations_stand_where_training_was(
    tmp_path: Path, counter: str, train: float, every: float, unit: float
) -> None:
    table(tmp_path / "loss.csv", f"{counter},loss", [train * i for i in range(1, round(10 / train) + 1)], 3.0)
    table(tmp_path / "eval_loss.csv", f"{counter},eval_loss", [every * i for i in range(1, round(10 / every) + 1)], 3.2)
    found = placed(tmp_path)
    assert all(step == round(epoch / unit) for epoch, (step, _) in found.items())
    assert sum(has for _, has in found.values()) == round(10 / every)


def test_evaluations_by_epoch_stand_at_the_steps_of_training(tmp_path: Path) -> None:
    lines = [f"{i},{i / 50:.10g},{3 - i / 1000}" for i in range(10, 501, 10)]
    (tmp_path / "loss.csv").write_text("\n".join(["step,epoch,loss", *lines]))
    table(tmp_path / "eval_loss.csv", "epoch,eval_loss", [float(i) for i in range(1, 11)], 3.2)
    steps = load([tmp_path]).steps.drop_nulls("eval_loss")
    assert steps["step"].to_list() == [50 * i for i in range(1, 11)]


def test_evaluations_outside_of_the_steps_of_training_keep_apart(tmp_path: Path) -> None:
    lines = [f"{i},{i / 50:.10g},{3 - i / 1000}" for i in range(150, 301, 10)]
    (tmp_path / "loss.csv").write_text("\n".join(["step,epoch,loss", *lines]))
    table(tmp_path / "eval_loss.csv", "epoch,eval_loss", [float(i) for i in range(1, 11)], 3.2)
    steps = load([tmp_path]).steps.drop_nulls("eval_loss")
    assert steps["step"].to_list() == [50 * i for i in range(1, 11)]


def test_fractions_that_differ_by_rounding_are_one_place(tmp_path: Path) -> None:
    (tmp_path / "loss.csv").write_text("step,loss\n" + "".join(f"{0.1 * i!r},{3 - i / 100}\n" for i in range(1, 60)))
    (tmp_path / "eval_loss.csv").write_text(
        "step,eval_loss\n" + "".join(f"{i / 10!r},{3 - i / 100}\n" for i in range(3, 60, 3))
    )
    steps = load([tmp_path]).steps
    assert steps["step"].to_list() == [*range(1, 60)]
    assert steps["eval_loss"].count() == 19


def test_whole_steps_beside_epochs_are_left_alone(tmp_path: Path) -> None:
    table(tmp_path / "loss.csv", "step,loss", [float(i) for i in range(1, 60)], 3.0)
    table(tmp_path / "eval_loss.csv", "step,eval_loss", [float(i) for i in range(5, 60, 5)], 3.0)
    assert load([tmp_path]).steps["step"].to_list() == [*range(1, 60)]
