"""Tables of pairwise sweeps: hosts in order, and every pair in its cell."""

from __future__ import annotations

import pytest

from gdiag.measures.bandwidth_table import sweep_tables
from tests.analyzers.made_benchmarks import view
from tests.analyzers.test_slow_member import HOSTS, pairs
from tests.ingesters.nccl_formats import Bench, text


def test_pairwise_sweeps_are_ranked_and_crossed() -> None:
    tables = sweep_tables(view(*pairs({"c3": 0.5})))
    ranked, crossed = tables[1:]
    assert ranked.rows[0][0] == "c3"
    assert ranked.rows[0][3] == "yes"
    assert {row[0] for row in crossed.rows} == set(HOSTS)
    names = [column.name for column in crossed.columns]
    row = next(row for row in crossed.rows if row[0] == "a1")
    assert row[names.index("a1")] is None
    assert row[names.index("b2")] == pytest.approx(189, rel=0.01)
    assert row[names.index("c3")] == pytest.approx(94.5, rel=0.01)


def test_one_sweep_is_shown_by_size() -> None:
    titles = [table.title for table in sweep_tables(view(text(Bench(sizes=(1 << 20, 1 << 28)))))]
    assert titles[1:] == ["1: all_reduce by size"]


def test_runs_with_and_without_a_limit_are_two_tables() -> None:
    tables = sweep_tables(view(text(Bench()), text(Bench(sizes=(1 << 20, 1 << 21)))))
    assert [column.name for column in tables[0].columns][-3:] == ["of limit", "latency", "verdict"]
    assert tables[1].title.startswith("benchmarks without a limit")
    assert tables[1].rows[0][-1] == "ends below 256 MiB"


def test_many_runs_are_listed_by_kind_the_worst_first() -> None:
    outputs = [text(Bench(peak=460)) for _ in range(20)] + [text(Bench(peak=200 + i)) for i in range(10)]
    tables = sweep_tables(view(*outputs))
    (judged,) = [table for table in tables if table.title.startswith("benchmarks")]
    assert judged.title.endswith("by kind, the worst first")
    assert [row[1] for row in judged.rows] == [10, 20]
    assert [row[-1] for row in judged.rows] == ["bad", "healthy"]


def test_the_size_of_an_error_is_no_count_of_wrong_elements() -> None:
    old = text(Bench(sizes=(1 << 20, 1 << 28)), "2.0").replace("0e+00", "5e-07")
    wrong = [column.name for column in sweep_tables(view(old))[1].columns].index("wrong")
    assert {row[wrong] for row in sweep_tables(view(old))[1].rows} == {None}
    assert {row[wrong] for row in sweep_tables(view(text(Bench(sizes=(1 << 20, 1 << 28)))))[1].rows} == {0.0}


def test_cards_are_asked_for_where_they_bound() -> None:
    one, several = (sweep_tables(view(text(Bench(model="Some GPU", ranks=16, hosts=h))))[0].title for h in (1, 2))
    assert one == "benchmarks without a limit (give --expect)"
    assert several == "benchmarks without a limit (give --nic-gbps or --expect)"
