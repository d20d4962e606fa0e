from __future__ import annotations

import numpy as np
import polars as pl

from gdiag.analyzers import straggler
from gdiag.measures.run import RunView
from gdiag.model import Run, Source
from gdiag.schema import TABLES, Records

AT = 500


def ranks(
    slow: dict[int, float], *, count: int = 8, total: int = 1000, waits: bool = False, often: float = 1.0
) -> RunView:
    """Per-rank rows; `slow` ranks compute that many times longer from step AT on, and the others wait for them."""
    rng = np.random.default_rng(0)
    compute = 1.25 * np.exp(0.01 * rng.standard_normal((total, count)))
    for rank, factor in slow.items():
        compute[AT:, rank] *= np.where(rng.random(total - AT) < often, factor, 1.0)
    longest = compute.max(axis=1, keepdims=True)
    comm = 0.3 + longest - compute
    columns = {"comm_time": comm} if waits else {"compute_time": compute, "comm_time": comm}
    frame = pl.DataFrame(
        {
            "step": np.repeat(np.arange(total), count),
            "rank": np.tile(np.arange(count), total),
            "step_time": np.repeat(longest[:, 0] + 0.35, count),
        }
        | {k: v.ravel() for k, v in columns.items()}
    )
    steps = frame.with_columns(
        pl.lit("run").alias("run"), pl.lit(0, pl.Int32).alias("source"), pl.int_range(1, frame.height + 1).alias("line"),
        pl.col("rank").cast(pl.Int32),
    )  # fmt: skip
    steps = steps.select(pl.col(c).cast(t) for c, t in TABLES["steps"].items() if c in steps.columns)
    run = Run("run", sources=(0,))
    return RunView(run, Records(runs=(run,), sources=(Source("ranks.jsonl", "jsonl", steps.height),), steps=steps))


def test_the_slow_rank_is_named_with_its_onset() -> None:
    (finding,) = straggler.analyze(ranks({3: 1.3}))
    assert finding.where.rank == 3
    assert finding.where.step == AT
    assert abs((finding.number("ratio") or 0) - 1.3) < 0.02
    assert finding.measure("told_by") == "compute time"
    assert finding.number("slowest_share") == 100


def test_it_is_told_by_waiting_least_where_compute_is_not_logged() -> None:
    (finding,) = straggler.analyze(ranks({5: 1.3}, waits=True))
    assert finding.where.rank == 5
    assert finding.measure("told_by") == "collective wait"


def test_equal_ranks_are_quiet() -> None:
    assert straggler.analyze(ranks({})) == []


def test_the_ratio_is_a_threshold() -> None:
    assert len(straggler.analyze(ranks({2: 1.15}))) == 1
    assert straggler.analyze(ranks({2: 1.15}), ratio=1.25) == []


def test_a_mild_straggler_that_is_always_the_slowest_is_named() -> None:
    (finding,) = straggler.analyze(ranks({6: 1.07}))
    assert finding.where.rank == 6
    assert finding.where.step is not None
    assert abs(finding.where.step - AT) <= 10


def test_all_ranks_of_a_host_are_one_finding() -> None:
    (finding,) = straggler.analyze(ranks(dict.fromkeys(range(8, 16), 1.4), count=32))
    assert finding.measure("one_host") is True
    assert finding.measure("slow_ranks") == "8, 9, 10, 11, 12, 13, 14, 15"


def test_two_ranks_are_told_apart() -> None:
    (finding,) = straggler.analyze(ranks({1: 1.3}, count=2))
    assert finding.where.rank == 1


def test_a_rank_that_is_slow_now_and_then_is_named() -> None:
    (finding,) = straggler.analyze(ranks({3: 1.4}, often=0.25))
    assert finding.where.rank == 3
    assert abs((finding.where.step or 0) - AT) < 30
    assert 20 < (finding.number("slow_share") or 0) < 30


def test_ranks_that_take_turns_at_being_slow_are_quiet() -> None:
    assert straggler.analyze(ranks(dict.fromkeys(range(8), 1.4), often=0.05)) == []


def test_a_host_that_holds_half_of_the_ranks_is_named() -> None:
    (finding,) = straggler.analyze(ranks(dict.fromkeys(range(4, 8), 1.15)))
    assert finding.measure("slow_ranks") == "4, 5, 6, 7"
    assert abs((finding.number("ratio") or 0) - 1.15) < 0.02
