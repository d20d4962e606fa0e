"""GD402: ranks that stand out in what is their own."""

from __future__ import annotations

import numpy as np
import pytest

from gdiag.analyzers.rank_outlier import analyze
from gdiag.measures.run import RunView
from gdiag.model import Severity
from tests.analyzers.made_layers import Floats, layered, norms
from tests.analyzers.made_runs import view


def local(count: int = 4, rows: int = 600) -> dict[int, dict[str, Floats]]:
    made = {}
    for r in range(count):
        rng = np.random.default_rng(r)
        made[r] = {"grad_norm": np.exp(rng.normal(0, 0.15, rows)), "loss": 3 + rng.normal(0, 0.15, rows)}
    return made


@pytest.mark.parametrize("rank", [0, 3])
def test_a_rank_and_a_layer_in_the_same_step(rank: int) -> None:
    made, ranks = norms(600), local()
    made["blocks.1.proj"][400] *= 7
    ranks[rank]["grad_norm"][400] *= 4 / ranks[rank]["grad_norm"][400]
    (finding,) = analyze(layered(made, rank_steps=ranks))
    assert (finding.where.step, finding.where.rank, finding.where.layer) == (400, rank, "blocks.1.proj")
    assert finding.severity is Severity.WARNING


def test_a_rank_alone_is_its_data() -> None:
    ranks = local()
    ranks[1]["grad_norm"][400] *= 4
    assert analyze(layered(norms(600), rank_steps=ranks)) == []


def test_one_layer_of_one_rank() -> None:
    ranks = {
        r: {n: v * np.exp(np.random.default_rng(r).normal(0, 0.05, 300)) for n, v in norms(300).items()}
        for r in range(3)
    }
    ranks[2]["wte"][250] *= 12
    (finding,) = analyze(layered(ranks=ranks))
    assert (finding.where.step, finding.where.rank, finding.where.layer) == (250, 2, "wte")
    assert analyze(layered(ranks=ranks), layer_ratio=40.0) == []


def test_a_rank_that_is_not_finite_alone() -> None:
    ranks = local()
    ranks[2]["loss"][300] = np.nan
    (finding,) = analyze(layered(rank_steps=ranks))
    assert (finding.where.step, finding.where.rank) == (300, 2)


def test_a_rank_that_holds_the_outliers() -> None:
    ranks = local()
    ranks[1]["grad_norm"][100::40] *= 5
    (finding,) = [f for f in analyze(layered(rank_steps=ranks)) if f.measure("rank_share")]
    assert finding.where.rank == 1
    assert (finding.number("rank_share") or 0) > 0.8
    assert (finding.number("p") or 1) < 1e-4


def test_a_loss_that_is_high_on_one_rank_for_several_rows() -> None:
    ranks = local()
    ranks[0]["loss"][300:310] *= 3
    found = [f for f in analyze(layered(rank_steps=ranks)) if f.measure("rank_share") is None]
    assert [(f.where.step, f.where.rank, f.where.last_step) for f in found] == [(300, 0, 309)]


@pytest.mark.parametrize("count", [2, 4, 8])
def test_quiet_on_healthy_ranks(count: int) -> None:
    assert analyze(layered(norms(600), rank_steps=local(count))) == []


@pytest.mark.parametrize("count", [2, 4])
def test_a_norm_that_its_own_loss_does_not_explain(count: int) -> None:
    ranks = local(count)
    ranks[1]["grad_norm"][400] *= 20
    (finding,) = analyze(layered(rank_steps=ranks))
    assert (finding.where.step, finding.where.rank, finding.severity) == (400, 1, Severity.WARNING)
    assert analyze(layered(rank_steps=ranks), alone=40.0, once=999.0) == []
    ranks[1]["loss"][400] += 3
    assert analyze(layered(rank_steps=ranks), once=999.0) == []
    assert all(f.severity is Severity.INFO for f in analyze(layered(rank_steps=ranks)))


def test_a_rank_that_goes_as_far_at_other_times_has_a_heavy_tail() -> None:
    ranks = local(2)
    ranks[0]["grad_norm"][250] *= 4
    for row in (150, 400):
        ranks[1]["grad_norm"][row] *= 9
    assert analyze(layered(rank_steps=ranks)) == []
    ranks[1]["grad_norm"][400] *= 8
    (finding,) = analyze(layered(rank_steps=ranks))
    assert (finding.where.step, finding.where.rank) == (400, 1)


def test_layers_that_leave_as_often_on_other_ranks_are_chance() -> None:
    ranks = {
        r: {n: v * np.exp(np.random.default_rng(r).normal(0, 0.05, 300)) for n, v in norms(300).items()}
        for r in range(3)
    }
    for rank, row in ((0, 120), (1, 160), (2, 250)):
        ranks[rank]["wte"][row] *= 6
    assert analyze(layered(ranks=ranks)) == []


@pytest.mark.parametrize("count", [2, 4])
def test_a_loss_that_leaves_its_own_distance_to_the_others(count: int) -> None:
    ranks = local(count)
    ranks[0]["loss"] += 0.5  # harder data from the start
    assert analyze(layered(norms(600), rank_steps=ranks)) == []
    ranks[1]["loss"][400:] += 1.2
    (finding,) = analyze(layered(norms(600), rank_steps=ranks))
    assert finding.where.rank == 1
    assert finding.where.step == pytest.approx(400, abs=2)
    assert finding.where.last_step == 599


def test_a_rank_whose_gradient_and_loss_both_fall_is_given_the_same_data() -> None:
    ranks = local()
    later = np.arange(200)
    ranks[2]["grad_norm"][400:] *= np.exp(-2 * (1 - np.exp(-later / 25)))
    ranks[2]["loss"][400:] -= 1.0 * (1 - np.exp(-later / 25))
    (finding,) = analyze(layered(norms(600), rank_steps=ranks))
    assert (finding.where.rank, finding.measure("kind"), finding.severity) == (2, "sinks", Severity.WARNING)
    assert finding.where.step == pytest.approx(405, abs=15)


def of_ranks(loss: Floats) -> RunView:
    """A run that logs the loss of every rank, (steps, ranks)."""
    steps, ranks = loss.shape
    return view({
        "step": np.repeat(np.arange(steps), ranks), "rank": np.tile(np.arange(ranks), steps), "loss": loss.ravel(),
    })  # fmt: skip


@pytest.mark.parametrize("seed", range(4))
def test_noise_that_shrinks_with_the_loss_leaves_nothing(seed: int) -> None:
    level = 0.01 + 2.3 * np.exp(-np.arange(1000) / 100)
    noise = np.exp(0.3 * np.random.default_rng(seed).standard_normal((1000, 8)))
    assert analyze(of_ranks(level[:, None] * noise)) == []


def test_data_that_are_harder_from_the_first_row_on_leave_nothing() -> None:
    t = np.arange(1000)
    loss = 2 + 6 * np.exp(-t / 100)[:, None] + 0.1 * np.random.default_rng(0).standard_normal((1000, 4))
    loss[:, 2] += 1.5 * np.exp(-t / 60)
    assert analyze(of_ranks(loss)) == []


def test_data_of_a_rank_that_come_in_stretches_leave_nothing() -> None:
    rng = np.random.default_rng(3)
    shards = np.zeros((2000, 8))
    for row in range(1, 2000):
        shards[row] = 0.9 * shards[row - 1] + 0.04 * rng.standard_normal(8)
    loss = 2 + 6 * np.exp(-np.arange(2000) / 100)[:, None] + 0.1 * rng.standard_normal((2000, 8)) + shards
    assert analyze(of_ranks(loss)) == []


def test_of_two_ranks_the_other_does_not_leave_where_one_falls() -> None:
    loss = 2 + 0.06 * np.random.default_rng(0).standard_normal((1000, 2))
    loss[600:, 1] -= 0.6
    assert analyze(of_ranks(loss)) == []
    loss[600:] += 0.6
    (finding,) = analyze(of_ranks(loss))
    assert finding.where.rank == 0


def test_a_shift_over_most_of_the_run_is_dated_to_its_first_row() -> None:
    loss = 6 + 0.03 * np.random.default_rng(0).standard_normal((1000, 4))
    loss[401:, 1] += 0.7
    (finding,) = analyze(of_ranks(loss))
    assert (finding.where.rank, finding.where.step, finding.where.last_step) == (1, 401, 999)


def test_a_rank_whose_own_loss_is_high_with_its_norm_may_have_other_data() -> None:
    ranks = local()
    ranks[2]["grad_norm"][400:410] *= 40
    (finding,) = analyze(layered(norms(600), rank_steps=ranks))
    assert finding.measure("kind") is None
    ranks[2]["loss"][400:410] += 8
    (finding,) = analyze(layered(norms(600), rank_steps=ranks))
    assert (finding.where.rank, finding.where.step, finding.measure("kind")) == (2, 400, "leaves")


@pytest.mark.parametrize("columns", [("loss",), ("grad_norm",), ("loss", "grad_norm")])
def test_one_row_of_one_rank_among_eight_is_worth_knowing(columns: tuple[str, ...]) -> None:
    ranks = local(8)
    for made in ranks.values():
        made["grad_norm"] **= 0.5
    for column in columns:
        ranks[5][column][400] = {"loss": 8.0, "grad_norm": 4.0}[column]
    (finding,) = analyze(layered(rank_steps=ranks))
    assert finding.severity is Severity.INFO
    assert (finding.where.step, finding.where.last_step, finding.where.rank) == (400, 400, 5)
    assert "in that row only" in finding.message
    assert ("; so is its " in finding.message) is (len(columns) == 2)
    assert analyze(layered(rank_steps=ranks), once=999.0) == []


def test_two_far_rows_or_few_ranks_have_no_lone_row() -> None:
    ranks = local(8)
    ranks[5]["loss"][400] = 8.0
    ranks[2]["loss"][200] = 7.0
    assert analyze(layered(rank_steps=ranks)) == []
    few = local(3)
    few[1]["loss"][400] = 8.0
    assert analyze(layered(rank_steps=few)) == []


def test_a_layer_far_above_others_that_rise_a_little_tells_the_rank_too() -> None:
    made, ranks = norms(600), local()
    made["blocks.1.proj"][400] *= 90
    for name in ("blocks.0.qkv", "blocks.2.fc", "blocks.1.qkv", "blocks.1.fc"):
        made[name][400] *= 3
    ranks[2]["grad_norm"][200] *= 12  # another far row of another rank
    ranks[3]["grad_norm"][400] *= 25 / ranks[3]["grad_norm"][400]
    found = [f for f in analyze(layered(made, rank_steps=ranks)) if f.where.step == 400]
    assert [(f.where.rank, f.where.layer, f.severity) for f in found] == [(3, "blocks.1.proj", Severity.WARNING)]
