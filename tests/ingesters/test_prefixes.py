"""Ranks, members and clocks in what stands before console lines."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gdiag.ingesters import load, prefixes
from gdiag.schema import Records
from tests.ingesters.console_samples import FORMATS, Line, losses

NEW_YEAR = datetime(2025, 12, 31, 23, 58, tzinfo=UTC)
FULL: dict[str, Callable[[datetime], str]] = {
    "rich": lambda t: f"[{t:%m/%d/%y %H:%M:%S}] INFO     ",
    "twelve hours": lambda t: f"{t:%m/%d/%Y %I:%M:%S %p} ",
    "ctime": lambda t: f"{t:%a %b} {t.day:2d} {t:%H:%M:%S %Y} ",
    "containerd": lambda t: f"{t:%Y-%m-%dT%H:%M:%S}.000000000Z stdout F ",
    "compose": lambda t: f"trainer-1  | {t:%Y-%m-%d %H:%M:%S} ",
}
PART: dict[str, Callable[[datetime], str]] = {
    "glog": lambda t: f"I{t:%m%d %H:%M:%S}.000000 139 train.py:300] ",
    "detectron2": lambda t: f"[{t:%m/%d %H:%M:%S} d2.utils.events]: ",
    "syslog": lambda t: f"{t:%b} {t.day:2d} {t:%H:%M:%S} node01 trainer[4711]: ",
    "bracketed": lambda t: f"[{t:%b} {t.day:2d} {t:%H:%M:%S}] ",
    "time of day": lambda t: f"{t:%H:%M:%S} ",
    "logger": lambda t: f"INFO {t:%H:%M:%S},000 - ",
}
LINES: dict[str, Line] = {
    "torchtitan": lambda s, v: f"step: {s}  loss: {v:.4f}  grad_norm: 1.0000  tps: 7,000",
    "megatron": FORMATS["megatron"][1],
    "nanogpt": lambda s, v: f"iter {s}: loss {v:.4f}, time 161.80ms, mfu 31.25%",
    "generic": lambda s, v: f"step {s} | loss: {v:.4f} | lr 6.0000e-04",
}


def read(tmp_path: Path, lines: list[str]) -> Records:
    (tmp_path / "console.log").write_text("\n".join(lines) + "\n")
    return load([tmp_path / "console.log"])


@pytest.mark.parametrize("form", [*FULL, *PART])
@pytest.mark.parametrize("name", LINES)
def test_clocks_run_on_over_new_year(tmp_path: Path, form: str, name: str) -> None:
    values = losses(40)
    prefix = (FULL | PART)[form]
    moments = [NEW_YEAR + timedelta(seconds=10 * i) for i in range(40)]
    steps = read(
        tmp_path, [prefix(t) + LINES[name](i, v) for i, (t, v) in enumerate(zip(moments, values, strict=True), 1)]
    ).steps
    assert steps["step"].to_list() == [*range(1, 41)]
    assert steps["loss"].to_list() == pytest.approx(values, abs=1e-4)
    clock = steps["time"] if form in FULL else steps["elapsed"]
    first = NEW_YEAR.timestamp() if form in FULL else 0.0
    assert clock.to_list() == pytest.approx([first + 10 * i for i in range(40)])
    assert not steps["rank"].count()


@given(st.lists(st.integers(1, 80_000), min_size=3, max_size=40), st.sampled_from(list(PART)), st.integers(0, 700))
def test_running_clocks_never_lose_a_second(gaps: list[int], form: str, day: int) -> None:
    moments = [datetime(2021, 1, 1, tzinfo=UTC) + timedelta(days=day)]
    for gap in gaps:
        moments.append(moments[-1] + timedelta(seconds=gap))
    assert all((t.month, t.day) != (2, 29) for t in moments)
    said = prefixes.running(pl.Series([PART[form](t) for t in moments]))
    assert said.to_list() == pytest.approx([(t - moments[0]).total_seconds() for t in moments])


@pytest.mark.parametrize(
    ("rank0", "rank1"),
    [
        ("[prterun-node1-4711@1,0]<stdout>: ", "[prterun-node1-4711@1,1]<stdout>: "),
        ("[1,0]<stderr>:", "[1,1]<stderr>:"),
        ("[trainer0]:", "[trainer1]:"),
        ("worker_0 | ", "worker_1 | "),
        ("rank 0: ", "rank 1: "),
        ("[pod/llm-worker-0/pytorch] ", "[pod/llm-worker-1/pytorch] "),
        ("llm-0  | ", "llm-1  | "),
    ],
)
@pytest.mark.parametrize("name", LINES)
def test_launchers_that_name_the_rank(tmp_path: Path, name: str, rank0: str, rank1: str) -> None:
    lines = [rank + LINES[name](i, v) for i, v in enumerate(losses(30), 1) for rank in (rank0, rank1)]
    steps = read(tmp_path, lines).steps
    assert steps["rank"].to_list() == [0, 1] * 30
    assert steps["step"].to_list() == [i for i in range(1, 31) for _ in range(2)]
    alone = read(tmp_path, lines[1::2]).steps
    assert not alone["rank"].count()
    assert alone["loss"].to_list() == pytest.approx(losses(30), abs=1e-4)


@pytest.mark.parametrize("name", LINES)
def test_copies_of_a_service_are_runs_and_no_ranks(tmp_path: Path, name: str) -> None:
    lines = [f"trainer-{n}  | {LINES[name](i, v + n)}" for i, v in enumerate(losses(30), 1) for n in (1, 2)]
    records = read(tmp_path, lines)
    assert not records.steps["rank"].count()
    assert sorted(set(records.steps["run"])) == ["trainer-1", "trainer-2"]


def test_members_one_after_the_other_are_one_run(tmp_path: Path) -> None:
    lines = [f"trainer-{1 + (i > 15)}  | {LINES['generic'](i, v)}" for i, v in enumerate(losses(30), 1)]
    steps = read(tmp_path, lines).steps
    assert steps["run"].n_unique() == 1
    assert steps["step"].to_list() == [*range(1, 31)]


@pytest.mark.parametrize("line", ["step-{s} | loss {v} | lr 0.001", "epoch_{s} | loss {v} | lr 0.001"])
def test_a_counted_word_is_no_member(tmp_path: Path, line: str) -> None:
    values = losses(30)
    steps = read(tmp_path, [line.format(s=i, v=v) for i, v in enumerate(values, 1)]).steps
    assert steps["loss"].to_list() == values
    assert not steps["rank"].count()
