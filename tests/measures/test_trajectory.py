"""The trajectory: each step once, the later writing wins, what was taken back stays visible."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gdiag.measures.trajectory import trajectory
from gdiag.schema import TABLES


def table(step: list[int], **columns: Sequence[float | None]) -> pl.DataFrame:
    rows = {
        "run": ["r"] * len(step),
        "step": step,
        "source": [0] * len(step),
        "line": list(range(1, len(step) + 1)),
        **columns,
    }
    return pl.DataFrame({"rank": [None] * len(step)} | rows, schema_overrides=TABLES["steps"], strict=False)


def test_a_resumed_run_uses_its_later_rows() -> None:
    step = [*range(100), *range(90, 150)]
    loss = [1.0] * 100 + [2.0] * 60
    found = trajectory(table(step, loss=loss))
    curve = found.paths[0].curve("loss")
    assert curve.step.tolist() == list(range(150))
    assert curve.value.tolist() == [1.0] * 90 + [2.0] * 60
    assert curve.finite.line[90] == 101
    assert [(r.step, r.last_step, r.rewound, r.from_start) for r in found.restarts] == [(90, 99, 10, False)]
    tail = found.paths[1]
    assert (tail.kind, tail.judged_from) == ("tail", 90)
    assert tail.curve("loss").value.tolist() == [1.0] * 100
    assert [(s.first_step, s.last_step, s.rows) for s in found.segments] == [(0, 99, 100), (90, 149, 60)]


def test_a_restart_of_one_step_uses_the_later_row() -> None:
    step = [*range(100), *range(99, 150)]
    loss = [1.0] * 100 + [2.0] * 51
    time = [2.0 * i + 300 * (i >= 100) for i in range(151)]
    found = trajectory(table(step, loss=loss, time=time, lr=[1e-3] * 151))
    assert [(r.step, r.rewound, r.pause) for r in found.restarts] == [(99, 1, 302.0)]
    assert found.paths[0].curve("loss").value[99] == 2.0
    assert (found.repeated, found.several) == (0, 0)


def test_a_run_started_again_from_nothing_replaces_the_first() -> None:
    found = trajectory(table([*range(50), *range(80)], loss=[1.0] * 50 + [2.0] * 80))
    assert found.restarts[0].from_start
    assert found.paths[0].curve("loss").value.tolist() == [2.0] * 80


def test_sparse_rows_of_one_step_are_joined() -> None:
    found = trajectory(table([0, 0, 1, 1], loss=[1.0, None, 2.0, None], lr=[None, 0.1, None, 0.2]))
    assert found.paths[0].frame.select("step", "loss", "lr").rows() == [(0, 1.0, 0.1), (1, 2.0, 0.2)]
    assert found.repeated == found.several == 0


def test_nan_is_kept_apart_from_not_logged() -> None:
    curve = trajectory(table([0, 1, 2, 3], loss=[1.0, math.nan, None, math.inf])).paths[0].curve("loss")
    assert curve.step.tolist() == [0]
    assert curve.nonfinite.step.tolist() == [1, 3]
    assert curve.nonfinite.line.tolist() == [2, 4]


def test_ranks_stand_for_a_missing_reduced_loss() -> None:
    step = [s for s in range(4) for _ in range(3)]
    rank: list[int | None] = [0, 1, 2] * 4
    found = trajectory(table(step, rank=rank, loss=[1.0, 2.0, 9.0] * 4))
    assert found.basis == "ranks"
    assert found.paths[0].curve("loss").value.tolist() == [2.0] * 4


def test_reduced_rows_go_before_ranks() -> None:
    found = trajectory(table([0, 0, 0], rank=[None, 0, 1], loss=[1.0, 5.0, 7.0], step_time=[None, 2.0, 4.0]))
    assert found.basis == "reduced"
    assert found.paths[0].frame.select("loss", "step_time").rows() == [(1.0, 3.0)]


@pytest.mark.parametrize(("every", "basis"), [(2, "reduced"), (3, "ranks")])
def test_reduced_rows_on_few_steps_leave_the_loss_to_the_ranks(every: int, basis: str) -> None:
    rows = [(s, r) for s in range(30) for r in (0, 1, None) if r is not None or s % every == 0]
    step, rank = [s for s, _ in rows], [r for _, r in rows]
    found = trajectory(table(step, rank=rank, loss=[9.0 if r is None else 1.0 + r for r in rank]))
    assert found.basis == basis
    curve = found.paths[0].curve("loss")
    assert curve.step.tolist() == [*range(0, 30, 1 if basis == "ranks" else every)]
    assert set(curve.value.tolist()) == {1.5 if basis == "ranks" else 9.0}


def test_two_sources_with_other_columns_are_joined() -> None:
    a = table(list(range(10)), loss=[1.0] * 10)
    b = table(list(range(10)), lr=[0.1] * 10).with_columns(source=pl.lit(1, pl.Int32))
    found = trajectory(pl.concat([a, b], how="diagonal"))
    assert found.paths[0].frame.select("loss", "lr").null_count().row(0) == (0, 0)


@pytest.mark.parametrize("block", [1, 5])
def test_each_writer_has_its_path(block: int) -> None:
    first, second = list(range(1000, 1100)), list(range(100))
    order = [s for i in range(0, 100, block) for s in first[i : i + block] + second[i : i + block]]
    found = trajectory(table(order, loss=[float(s >= 1000) for s in order]))
    assert found.writers == 2
    assert [len(set(p.curve("loss").value)) for p in found.paths] == [1, 1]


@settings(max_examples=25, deadline=None)
@given(st.integers(20, 80), st.integers(0, 2**31), st.sampled_from(["shuffle", "double", "offset"]))
def test_order_and_repeats_do_not_matter(rows: int, seed: int, change: str) -> None:
    rng = np.random.default_rng(seed)
    frame = table(list(range(rows)), loss=rng.normal(size=rows).tolist())
    plain = trajectory(frame).paths[0].curve("loss")
    if change == "shuffle":
        other = frame.sample(fraction=1, shuffle=True, seed=seed % 1000)
    elif change == "double":
        other = pl.concat([frame, frame]).sort("step", maintain_order=True)
    else:
        other = frame.with_columns(pl.col("step") + 1_000_000)
    again = trajectory(other).paths[0].curve("loss")
    assert again.value.tolist() == plain.value.tolist()


def test_no_rows_give_an_empty_trajectory() -> None:
    found = trajectory(table([], loss=[]))
    assert len(found.paths[0].curve("loss")) == 0
    assert found.segments == ()


def test_files_of_different_ranks_were_written_side_by_side() -> None:
    parts = [
        table(list(range(10)), rank=[rank] * 10, loss=[float(rank)] * 10).with_columns(source=pl.lit(rank, pl.Int32))
        for rank in range(3)
    ]
    found = trajectory(pl.concat(parts))
    assert (found.restarts, len(found.segments), found.basis) == ((), 1, "ranks")
    assert found.paths[0].curve("loss").value.tolist() == [1.0] * 10
    again = parts[0].with_columns(pl.col("step") + 8, source=pl.lit(9, pl.Int32))
    assert [r.step for r in trajectory(pl.concat([*parts, again])).restarts] == [8]
