"""Values across ranks: agreement, who leaves, outliers, one layer of one rank."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gdiag.measures.rank_layers import first_rank_layer
from gdiag.measures.ranks import RankTable, binomial_tail, by_rank, disagreement, nonfinite_ranks, outliers
from tests.analyzers.made_layers import Floats, layered, norms


def ranked(value: Floats, first: int = 0) -> RankTable:
    rows, ranks = value.shape
    return RankTable(np.arange(first, first + rows), tuple(range(ranks)), value, np.ones(value.shape, bool))


def shared(rows: int, ranks: int, seed: int = 0) -> Floats:
    line = 1000 + np.cumsum(np.random.default_rng(seed).normal(0, 1, rows))
    return np.repeat(line[:, None], ranks, axis=1)


def test_columns_are_set_side_by_side() -> None:
    a, b = np.arange(20.0), np.arange(20.0) + 1
    view = layered(rank_steps={3: {"loss": a}, 1: {"loss": b}})
    table = by_rank(view.steps, "loss")
    assert table is not None
    assert table.ranks == (1, 3)
    assert table.value[:, 0].tolist() == b.tolist()
    assert by_rank(view.steps, "grad_norm") is None
    assert by_rank(layered(steps={"loss": a}).steps, "loss") is None


def test_ranks_that_all_move_apart_are_no_outliers() -> None:
    rng = np.random.default_rng(2)
    value = 2.0 * np.exp(0.01 * rng.standard_normal((300, 4)))
    before = ranked(value * np.exp(0.5 * rng.standard_normal((300, 4)) * (np.arange(300) >= 150)[:, None]))
    # The model begins to learn, its batches differ: at the first such rows nothing around tells, of all later ones none is far.
    assert all(hit.row - 150 < 8 for hit in outliers(before))
    assert len(outliers(before)) <= 2
    value = before.value
    value[200, 2] *= 400
    assert [(hit.step, hit.rank) for hit in outliers(ranked(value))] == [(200, 2)]


@settings(max_examples=20, deadline=None)
@given(st.integers(3, 16), st.integers(8, 90), st.integers(0, 2**31))
def test_the_rank_that_leaves_is_named(ranks: int, row: int, seed: int) -> None:
    value = shared(100, ranks, seed)
    who = seed % ranks
    value[row:, who] *= 1 + 1e-4
    found = disagreement(ranked(value, 500), "param_checksum")
    assert found is not None
    assert (found.step, found.ranks, found.majority, found.rows) == (500 + row, (who,), ranks - 1, 100 - row)
    assert found.deviation == pytest.approx(1e-4, rel=0.01)


def test_of_two_ranks_neither_is_right() -> None:
    value = shared(50, 2)
    value[20:, 1] += 1
    found = disagreement(ranked(value), "param_checksum")
    assert found is not None
    assert (found.ranks, found.majority) == ((0, 1), 0)


def test_of_two_ranks_the_one_that_left_its_course_is_named() -> None:
    value = shared(100, 2) + 3 * np.arange(100)[:, None]
    value[60:, 1] += 40
    found = disagreement(ranked(value), "param_checksum")
    assert found is not None
    assert (found.step, found.ranks, found.majority) == (60, (1,), 1)
    assert 4 < found.leap < 40
    both = value.copy()
    both[60:, 0] -= 50  # neither goes on
    found = disagreement(ranked(both), "param_checksum")
    assert found is not None
    assert (found.ranks, found.majority, found.leap) == ((0, 1), 0, 0.0)
    hashes = np.repeat(np.random.default_rng(0).integers(0, 2**40, 100).astype(float)[:, None], 2, axis=1)
    hashes[60:, 1] += 7e11
    found = disagreement(ranked(hashes), "param_checksum")
    assert found is not None
    assert (found.ranks, found.leap) == ((0, 1), 0.0)


def test_values_of_their_own_are_not_expected_to_agree() -> None:
    rng = np.random.default_rng(0)
    assert disagreement(ranked(rng.normal(3, 0.1, (200, 4))), "grad_norm") is None
    assert disagreement(ranked(shared(200, 4)), "grad_norm") is None


def test_a_replica_wrong_from_the_start_is_told_when_others_agree() -> None:
    value = shared(50, 4)
    value[:, 2] += 5
    found = disagreement(ranked(value), "param_checksum")
    assert found is not None
    assert (found.step, found.ranks) == (0, (2,))
    sharded = shared(50, 4) * np.array([1.0, 1.1, 1.2, 1.3])
    assert disagreement(ranked(sharded), "param_checksum") is None


def test_one_rank_that_is_not_finite_disagrees() -> None:
    value = shared(50, 4)
    value[30, 1] = np.nan
    table = ranked(value)
    found = disagreement(table, "param_norm")
    assert found is not None
    assert (found.ranks, found.deviation) == ((1,), float("inf"))
    assert nonfinite_ranks(table) == (30, (1,))
    assert nonfinite_ranks(ranked(np.full((5, 2), np.nan))) is None


def test_outliers_are_judged_by_what_is_usual_between_ranks() -> None:
    rng = np.random.default_rng(0)
    value = np.exp(rng.normal(0, 0.15, (400, 4)))
    value[200, 3] *= 8
    (found,) = outliers(ranked(value))
    assert (found.step, found.rank) == (200, 3)
    assert found.ratio > 5
    assert outliers(ranked(np.exp(rng.normal(0, 1.0, (400, 4)))), ratio=2.0) == []


def test_one_layer_of_one_rank() -> None:
    ranks = {
        r: {n: v * np.exp(np.random.default_rng(r).normal(0, 0.05, 200)) for n, v in norms(200).items()}
        for r in range(4)
    }
    view = layered(ranks=ranks)
    assert first_rank_layer(view.layers, view.layer_columns, 4.0, 8.0) is None
    ranks[2]["blocks.1.fc"][150] *= 9
    view = layered(ranks=ranks)
    found = first_rank_layer(view.layers, view.layer_columns, 4.0, 8.0)
    assert found is not None
    assert (found.step, found.rank, found.layer, found.layers) == (150, 2, "blocks.1.fc", 1)


def test_binomial_tail() -> None:
    assert binomial_tail(0, 5, 0.3) == pytest.approx(1)
    assert binomial_tail(5, 5, 0.5) == pytest.approx(1 / 32)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_of_two_ranks_one_that_is_not_finite_left_without_measure(value: float) -> None:
    both = shared(100, 2) + 3 * np.arange(100)[:, None]
    both[60:, 1] = value
    found = disagreement(ranked(both), "param_norm")
    assert found is not None
    assert (found.ranks, found.leap) == ((1,), np.inf)
