"""GD707: collectives slower than usual, apart from ranks that arrive late."""

from __future__ import annotations

import numpy as np
import polars as pl

from gdiag.analyzers import slow_collective, straggler
from gdiag.measures.run import RunView
from gdiag.model import Run, Severity, Source
from gdiag.schema import TABLES, Records
from tests.analyzers import made_runs

STEPS, RANKS = 600, 4
SLOW = np.arange(300, 360)


def ranked(comm: np.ndarray, late: np.ndarray | None = None) -> RunView:
    """Rows per rank: `comm` is the collectives' own time, `late` what rank 2 computes longer; the others wait for it."""
    rng = np.random.default_rng(5)
    own = 1.0 + 0.01 * rng.random((STEPS, RANKS))
    if late is not None:
        own[:, 2] += late
    wait = comm[:, None] + own.max(axis=1, keepdims=True) - own
    total = own + wait
    steps = np.repeat(np.arange(STEPS), RANKS)
    return made_runs.view({
        "step": steps, "rank": np.tile(np.arange(RANKS), STEPS), "comm_time": wait.ravel(), "compute_time": own.ravel(),
        "step_time": total.ravel(), "time": 1.7e9 + np.repeat(np.cumsum(total.max(axis=1)), RANKS),
    })  # fmt: skip


def usual(slow: float = 1.0) -> np.ndarray:
    comm = 0.2 * np.exp(0.03 * np.random.default_rng(3).standard_normal(STEPS))
    comm[SLOW[::2]] *= slow
    return comm


def operations(slow: float, hosts: tuple[str, ...] = ("a", "b")) -> RunView:
    """An inspector's log of two ranks, an operation a second; all slow from the 120th to the 160th."""
    rng = np.random.default_rng(1)
    rows = []
    for number in range(300):
        own = 0.04 * (1 + 0.05 * rng.random()) * (slow if 120 <= number < 160 else 1.0)
        for rank, host in enumerate(hosts):
            rows.append(
                (number + 1, 1.7e9 + number, host, rank, "0xa", number, "AllReduce", 1 << 20, own * (1 + 0.2 * rank))
            )
    names = ("line", "time", "host", "rank", "group", "sequence", "collective", "size", "seconds")
    table = pl.DataFrame(rows, schema={n: TABLES["operations"][n] for n in names}, orient="row")
    table = table.with_columns(run=pl.lit("run"), source=pl.lit(0, pl.Int32))
    run = Run("run", sources=(0,))
    return RunView(run, Records(runs=(run,), sources=(Source("r.jsonl", "collective-timings", 300),), operations=table))


def test_slow_for_all_ranks() -> None:
    (finding,) = slow_collective.analyze(ranked(usual(5.0)))
    assert finding.severity is Severity.WARNING
    assert finding.where.step == 300
    assert finding.where.last_step == 358
    assert finding.number("slow_steps") == 30
    assert finding.number("ranks") == RANKS
    assert "of 4 ranks alike" in finding.message
    assert 4.5 < (finding.number("ratio") or 0) < 5.5


def test_a_rank_that_arrives_late_is_a_straggler_and_no_slow_collective() -> None:
    late = np.where(np.isin(np.arange(STEPS), np.arange(300, 600)), 0.8, 0.0)
    run = ranked(usual(), late)
    assert slow_collective.analyze(run) == []
    assert [f.where.rank for f in straggler.analyze(run)] == [2]


def test_reduced_columns_say_that_ranks_are_not_told_apart() -> None:
    comm = usual(5.0)
    (finding,) = slow_collective.analyze(made_runs.view({"comm_time": comm, "step_time": 1.0 + comm}))
    assert "ranks reduced to one figure" in finding.message
    assert finding.number("ranks") == 0


def test_quiet_where_nothing_changes_and_where_the_step_does_not_get_longer() -> None:
    assert slow_collective.analyze(ranked(usual())) == []
    comm = usual(5.0)  # overlapped: the step takes no longer
    assert slow_collective.analyze(made_runs.view({"comm_time": comm, "step_time": np.full(STEPS, 2.0)})) == []


def test_thresholds() -> None:
    run = ranked(usual(5.0))
    assert slow_collective.analyze(run, ratio=6.0) == []
    assert [f.severity for f in slow_collective.analyze(run, lost=0.2)] == [Severity.INFO]
    assert slow_collective.analyze(run, count=31) == []


def test_single_operations_by_the_clock() -> None:
    (finding,) = slow_collective.analyze(operations(6.0))
    assert "AllReduce takes 5.95 times" in finding.message
    assert finding.number("slow_operations") == 40
    assert finding.where.time == 1.7e9 + 120
    assert finding.where.last_time == 1.7e9 + 159
    assert finding.where.host is None
    assert slow_collective.analyze(operations(1.0)) == []
