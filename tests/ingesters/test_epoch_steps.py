"""Steps that begin again with every epoch are counted on; all that has a line of the run moves with them."""

from __future__ import annotations

import json
import random
from pathlib import Path

import polars as pl
import pytest

from gdiag.ingesters import load
from gdiag.schema import Records

Rows = list[dict[str, object]]


def read(tmp_path: Path, rows: Rows) -> Records:
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return load([tmp_path / "log.jsonl"])


def epochs(count: int, length: int, first: int = 0, every: int = 1, seed: int = 0) -> Rows:
    """Rows with an epoch and a step that begins again in each, and a loss that falls over all."""
    drawn = random.Random(seed)
    return [
        {"epoch": e, "step": i, "loss": 2 + 2 / (1 + (e * length + i) / 50) + drawn.gauss(0, 0.03)}
        for e in range(count)
        for i in range(first, length + first, every)
    ]


def wander(count: int, length: int, seed: int, step: float = 0.01) -> Rows:
    """The same without an epoch, and a loss that wanders."""
    drawn = random.Random(seed)
    level, rows = 1.0, []
    for _ in range(count):
        for i in range(length):
            level += drawn.gauss(0, step)
            rows.append({"step": i, "loss": level + drawn.gauss(0, 0.05)})
    return rows  # type: ignore[return-value]


def notes(records: Records) -> str:
    return "; ".join(records.sources[0].notes)


@pytest.mark.parametrize(
    ("length", "first", "every"), [(100, 0, 1), (100, 1, 1), (100, 0, 10), (100, 10, 10), (30, 0, 10)]
)
def test_a_column_of_epochs_counts_the_steps_on(tmp_path: Path, length: int, first: int, every: int) -> None:
    records = read(tmp_path, epochs(4, length, first, every))
    assert [run.id for run in records.runs] == ["run"]
    assert records.steps["step"].to_list() == [*range(first, 4 * length + first, every)]
    assert f"counted on, {length} an epoch" in notes(records)


def test_a_step_of_the_run_is_left_alone(tmp_path: Path) -> None:
    rows: Rows = [{"epoch": i // 100, "step": i, "loss": 4 - i / 200} for i in range(400)]
    records = read(tmp_path, rows[:250] + rows[220:])
    assert records.steps["step"].to_list() == [*range(250), *range(220, 400)]
    assert notes(records) == ""


def test_a_restart_in_mid_epoch_stays_one(tmp_path: Path) -> None:
    rows = epochs(4, 100)
    records = read(tmp_path, rows[:250] + rows[220:])
    assert records.steps["step"].to_list() == [*range(250), *range(220, 400)]


def test_two_runs_of_epochs(tmp_path: Path) -> None:
    records = read(tmp_path, epochs(3, 100) + epochs(3, 100, seed=1))
    assert [run.id for run in records.runs] == ["1", "2"]
    assert records.steps.group_by("run").agg(pl.col("step").max()).sort("run").rows() == [("1", 299), ("2", 299)]


def test_evaluation_ranks_and_layers_move_along(tmp_path: Path) -> None:
    rows: Rows = []
    for e in range(3):
        for i in range(50):
            rows += [
                {"epoch": e, "step": i, "rank": r, "loss": 4.0 - i / 100, "grad_norm/blocks.0.fc": 1.0}
                for r in range(2)
            ]
        rows.append({"epoch": e, "rank": 0, "eval_loss": 3.0})
    records = read(tmp_path, rows)
    assert records.steps.drop_nulls("loss").filter(rank=1)["step"].to_list() == [*range(150)]
    assert records.steps.drop_nulls("eval_loss")["step"].to_list() == [49, 99, 149]
    assert records.layers["step"].unique().sort().to_list() == [*range(150)]


@pytest.mark.parametrize("seed", range(8))
def test_equal_lengths_are_epochs_where_the_loss_wanders(tmp_path: Path, seed: int) -> None:
    records = read(tmp_path, wander(6, 100, seed))
    assert [run.id for run in records.runs] == ["run"]
    assert records.steps["step"].to_list() == [*range(600)]
    assert "begin again 5 times after the same number" in notes(records)


def test_equal_lengths_are_runs_where_the_loss_begins_again(tmp_path: Path) -> None:
    rows = [row for seed in range(4) for row in epochs(1, 100, seed=seed)]
    records = read(tmp_path, [{"step": row["step"], "loss": row["loss"]} for row in rows])
    assert [run.id for run in records.runs] == ["1", "2", "3", "4"]


def test_one_run_written_three_times_is_not_counted_on(tmp_path: Path) -> None:
    records = read(tmp_path, wander(1, 100, 0) * 3)
    assert records.steps["step"].max() == 99


def test_a_process_that_dies_at_the_same_step_begins_no_epoch(tmp_path: Path) -> None:
    drawn = random.Random(0)
    stretch = "".join(f"step {i} | loss {1 + drawn.gauss(0, 0.1):.4f} | lr 1e-3\n" for i in range(100))
    died = "torch.cuda.OutOfMemoryError: CUDA out of memory\n"
    other = "".join(f"step {i} | loss {1 + drawn.gauss(0, 0.1):.4f} | lr 1e-3\n" for i in range(100))
    (tmp_path / "run.log").write_text(stretch + died + other + died + stretch.replace(" | lr", "1 | lr"))
    assert load([tmp_path / "run.log"]).steps["step"].max() == 99


def test_unequal_lengths_are_no_epochs(tmp_path: Path) -> None:
    records = read(tmp_path, wander(1, 100, 0) + wander(1, 150, 1) + wander(1, 120, 2))
    assert records.steps["step"].max() == 149


@pytest.mark.parametrize("named", [True, False])
def test_steps_that_cannot_be_counted_on_stay(tmp_path: Path, named: bool) -> None:
    drawn = random.Random(1)
    rows: Rows = [
        {"step": i << 57, "loss": 2 + drawn.random(), **({"epoch": e} if named else {})}
        for e in range(40)
        for i in range(10)
    ]
    assert "counted on" not in " ".join(read(tmp_path, rows).sources[0].notes)
