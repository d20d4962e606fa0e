"""Files of one run that count epochs in different fractions."""

from __future__ import annotations

import random
from pathlib import Path

import polars as pl
import pytest

from gdiag.ingesters import load
from gdiag.ingesters.rows import counted_in


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


UNITS = [0.1, 1 / 7, 0.25, 1 / 9, 0.05, 0.3, 0.0625]


def curve(seed: int, unit: float, count: int, counter: str) -> list[str]:
    drawn = random.Random(seed)
    return [f"{counter},loss", *(f"{unit * i:.6g},{3 * 0.97**i + drawn.random() / 20:.4f}" for i in range(1, count))]


def steps_of(paths: list[Path]) -> dict[str, list[int]]:
    records = load(paths)
    return {run.id: records.steps.filter(pl.col("run") == run.id)["step"].to_list() for run in records.runs}


@pytest.mark.parametrize("counter", ["epoch", "step"])
@pytest.mark.parametrize("seed", range(6))
def test_runs_do_not_change_each_others_steps(tmp_path: Path, seed: int, counter: str) -> None:
    drawn = random.Random(seed)
    units = drawn.choices(UNITS, k=drawn.randint(2, 5))
    tables = {f"{chr(97 + i)}": curve(10 * seed + i, unit, 40 + 9 * i, counter) for i, unit in enumerate(units)}
    for name, lines in tables.items():
        (tmp_path / f"{name}.csv").write_text("\n".join(lines) + "\n")
    alone = {name: steps_of([tmp_path / f"{name}.csv"])["run"] for name in tables}
    assert steps_of([tmp_path]) == alone
    rows = [f"{name},{line}" for name, lines in tables.items() for line in lines[1:]]
    long = tmp_path / "in_one_table" / "long.csv"
    long.parent.mkdir()
    for order in (rows, sorted(rows, key=lambda row: float(row.split(",")[1]))):
        long.write_text("\n".join([f"run,{counter},loss", *order]) + "\n")
        assert steps_of([long]) == alone


def test_runs_appended_to_one_another_keep_their_steps(tmp_path: Path) -> None:
    one, other = curve(1, 0.1, 60, "step"), curve(2, 1 / 7, 60, "step")
    (tmp_path / "runs.csv").write_text("\n".join([*one, *other[1:]]) + "\n")
    assert steps_of([tmp_path / "runs.csv"]) == {"1": [*range(1, 60)], "2": [*range(1, 60)]}


def test_rows_without_a_step_do_not_take_another_runs(tmp_path: Path) -> None:
    rows = ["run,step,loss", "a,1,3.0", "a,2,2.5", "a,3,2.4", "b,,2.9", "b,1,2.8", "b,2,2.7"]
    (tmp_path / "long.csv").write_text("\n".join(rows) + "\n")
    assert steps_of([tmp_path / "long.csv"])["b"] == [1, 1, 2]


@pytest.mark.parametrize("others", [0, 3])
def test_files_of_one_run_share_a_unit_whatever_lies_beside_them(tmp_path: Path, others: int) -> None:
    first, second = curve(1, 0.1, 41, "step"), curve(2, 0.05, 30, "step")
    (tmp_path / "run-1.csv").write_text("\n".join(first) + "\n")
    after = [
        f"{4 + float(x):.6g},{3 * 0.97 ** (40 + i):.4f}" for i, x in enumerate(r.split(",")[0] for r in second[1:])
    ]
    (tmp_path / "run-2.csv").write_text("\n".join(["step,loss", *after]) + "\n")
    for i in range(others):
        (tmp_path / f"{'xyz'[i]}.csv").write_text("\n".join(curve(20 + i, UNITS[i + 1], 50, "step")) + "\n")
    steps = load([tmp_path]).steps.filter(pl.col("epoch").is_not_null())
    own = steps.filter(pl.col("run").is_in(["run", "run-1"]))
    unit = 0.05
    assert own.height == 40 + 29
    assert own["step"].to_list() == [round(e / unit) for e in own["epoch"]]


def test_fractions_are_counted_in_their_common_part() -> None:
    number, how = counted_in(pl.Series([0.2, 0.4, 0.7, 0.9, 1.2, 1.4]))
    assert number.to_list() == [2, 4, 7, 9, 12, 14]
    assert how == "counted in units of 0.1"
    number, how = counted_in(pl.Series([0.2, 0.41, 0.72]))  # too few to show a part that they share
    assert number.to_list() == [0, 1, 2]
