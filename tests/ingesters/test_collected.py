"""What a collector of logs puts before each line changes nothing of what is read."""

from __future__ import annotations

import random
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from gdiag.ingesters import load
from gdiag.schema import Records
from tests.ingesters.console_samples import FORMATS, WHOLE, losses

PREFIXES = (
    "trainer-1  | ", "trainer_1 | ", "2025-12-31T23:{m:02d}:{s:02d}.123456789Z stdout F ", "[pod/train-0/pytorch] ",
    "2026-01-02T03:{m:02d}:{s:02d}Z ", "2026-01-02 03:{m:02d}:{s:02d},123 ", " 0: ", "12: ", "Jan  2 03:{m:02d}:{s:02d} node01 train[4711]: ",
    "I0102 03:{m:02d}:{s:02d}.123456 139 train.py:300] ", "03:{m:02d}:{s:02d} ", "2026-01-02 03:{m:02d}:{s:02d},123 - __main__ - INFO - ",
    "INFO:root:", "INFO     | ", "(TrainWorker pid=123, ip=10.0.0.3) ", "trainer/0 ", "node-3: ", "[1,0]<stdout>: ",
    "2026-01-02 03:{m:02d}:{s:02d}.123 | INFO     | __main__:train:123 - ", "\t",
)  # fmt: skip
SAMPLES = {**FORMATS, **WHOLE}


def read(folder: Path, lines: list[str]) -> Records:
    (folder / "run.log").write_text("\n".join(lines) + "\n")
    return load([folder / "run.log"])


def told(records: Records) -> pl.DataFrame:
    names = ("step", "loss", "eval_loss", "grad_norm", "lr", "rank")
    return records.steps.select(name for name in names if name in records.steps.columns)


def behind(prefix: str, lines: list[str]) -> list[str]:
    return [prefix.format(m=i // 60 % 60, s=i % 60) + line for i, line in enumerate(lines)]


def made(name: str, count: int = 40) -> list[str]:
    return [part for i, v in enumerate(losses(count), 1) for part in SAMPLES[name][1](3 * i, v).split("\n")]


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(list(SAMPLES)), st.sampled_from(PREFIXES))
def test_a_prefix_of_all_lines_changes_nothing(
    tmp_path_factory: pytest.TempPathFactory, name: str, prefix: str
) -> None:
    folder = tmp_path_factory.mktemp("collected")
    lines = made(name)
    assert_frame_equal(told(read(folder, behind(prefix, lines))), told(read(folder, lines)))


@pytest.mark.parametrize("name", ["llm.c", "olmo", "composer", "openai", "leading", "pairs"])
def test_ranks_whose_lines_take_turns(tmp_path: Path, name: str) -> None:
    lines = made(name)
    alone = told(read(tmp_path, lines)).drop("rank")
    both = told(read(tmp_path, [f"[rank{rank}]: {line}" for line in lines for rank in (0, 1)]))
    for rank in (0, 1):
        assert_frame_equal(both.filter(pl.col("rank") == rank).drop("rank"), alone)
    assert both.height == 2 * alone.height


def test_the_collector_s_clock_is_that_of_its_lines(tmp_path: Path) -> None:
    steps = read(tmp_path, behind("2026-01-02T03:{m:02d}:{s:02d}Z ", made("llm.c"))).steps
    assert steps["time"].diff().drop_nulls().unique().to_list() == [1.0]


def test_members_without_a_step_line_are_counted(tmp_path: Path) -> None:
    lines = [f"[rank0]: {line}" for line in made("llm.c")]
    lines[5:5] = ["[rank1]: waiting for the others"] * 4
    records = read(tmp_path, lines)
    assert records.steps.height == 40
    assert "4 lines of other members hold no step lines" in records.sources[0].notes


@pytest.mark.parametrize("noise", [1, 2])
def test_a_warning_in_the_middle_of_a_block(tmp_path: Path, noise: int) -> None:
    lines = made("olmo")
    alone = told(read(tmp_path, lines))
    for at in (2, 40, 77):
        lines[at:at] = ["WARNING: a warning of another library"] * noise
    assert_frame_equal(told(read(tmp_path, lines)), alone)


@pytest.mark.parametrize("name", ["mllog", "dllogger", "metaseq"])
@pytest.mark.parametrize(("word", "value"), [("nan", float("nan")), ("-inf", -float("inf")), ("Inf", float("inf"))])
def test_numbers_as_c_prints_them_in_json(tmp_path: Path, name: str, word: str, value: float) -> None:
    lines = made(name)
    loss = f"{losses(40)[20]:.3f}" if name == "metaseq" else str(losses(40)[20])
    lines[20] = lines[20].replace(f'"{loss}"', word).replace(loss, word)
    records = read(tmp_path, lines)
    assert records.sources[0].rejected == 0
    assert str(records.steps["loss"][20]) == str(value)


def test_carriage_returns_before_a_last_newline(tmp_path: Path) -> None:
    lines = made("pairs")
    alone = told(read(tmp_path, lines))
    assert_frame_equal(told(read(tmp_path, ["\r".join(lines)])), alone)


@pytest.mark.parametrize(
    ("form", "column"),
    [
        ("trainer-{r} | ", "rank"), ("node{r}: ", "rank"), ("worker/{r} ", "rank"), ("{r}: ", "rank"), ("replica{n} | ", "run"),
        ("(TrainWorker pid={p}, ip=10.0.0.{r}) ", "run"), ("[rank{r}]: ", "rank"), ("trainer-{r}  | 2026-01-02T03:00:00Z ", "rank"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", ["olmo", "tqdm", "megatron", "llm.c"])
def test_lines_of_members_that_take_turns_are_all_read(tmp_path: Path, name: str, form: str, column: str) -> None:
    alone = told(read(tmp_path, made(name))).drop("rank")
    lines = [form.format(r=r, n=r + 1, p=r + 100) + line for line in made(name) for r in range(3)]
    steps = read(tmp_path, lines).steps
    assert steps[column].n_unique() == 3
    for _, part in steps.group_by(column):
        assert_frame_equal(part.select(alone.columns), alone)


@pytest.mark.parametrize("word", ["Epoch", "epoch", "step"])
def test_what_is_counted_is_no_member(tmp_path: Path, word: str) -> None:
    lines = [f"{word}{i // 20}: iter {i}: loss {v:.4f}, time 9.80ms, mfu 31.25%" for i, v in enumerate(losses(60))]
    steps = read(tmp_path, lines).steps
    assert steps["run"].n_unique() == 1
    assert steps["step"].to_list() == [*range(60)]


@pytest.mark.parametrize("name", ["pairs", "build-nanogpt-log", "leading", "llm.c", "olmo"])
def test_a_warning_between_all_lines_changes_nothing(tmp_path: Path, name: str) -> None:
    lines = [part for line in made(name) for part in (line, "site-packages/torch/x.py:33: UserWarning: deprecated")]
    records = read(tmp_path, lines)
    assert_frame_equal(told(records), told(read(tmp_path, made(name))))
    assert records.sources[0].rejected == 0


@pytest.mark.parametrize(
    "form",
    [
        "{r:3d}: ",
        "trainer-{r:<3d} | ",
        "[pod/train-{h:x}/main] ",
        "trainer-{n} | 2025-01-15T10:00:00.123Z ",
        "gpu{r:03d}: ",
    ],
)
@pytest.mark.parametrize("name", ["olmo", "composer", "openai", "leading", "pairs"])
@pytest.mark.parametrize("mixed", [False, True])
def test_lines_of_many_members_among_one_another_are_all_read(
    tmp_path: Path, name: str, form: str, mixed: bool
) -> None:
    alone = told(read(tmp_path, made(name, 8))).drop("rank")
    prefixes = [form.format(r=r, n=r + 1, h=7919 * (r + 1)) for r in range(12)]
    queues = [[prefix + line for line in made(name, 8)] for prefix in prefixes]
    order = [r for _ in queues[0] for r in range(len(queues))]
    if mixed:
        random.Random(5).shuffle(order)
    lines = [queues[r].pop(0) for r in order]
    steps = read(tmp_path, lines).steps
    column = "rank" if steps["rank"].count() else "run"
    assert steps[column].n_unique() == 12
    for _, part in steps.group_by(column):
        assert_frame_equal(part.select(alone.columns), alone)


def test_hundreds_of_members_are_told_apart(tmp_path: Path) -> None:
    lines = [f"trainer-{r} | {line}" for line in made("pairs", 4) for r in range(300)]
    steps = read(tmp_path, lines).steps
    assert steps["rank"].n_unique() == 300
    assert steps.height == 1200
