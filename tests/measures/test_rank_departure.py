"""A rank whose gradient norm and loss sink below the other ranks'."""

from __future__ import annotations

from time import process_time

import numpy as np
import pytest

from gdiag.measures.rank_departure import sinking
from gdiag.measures.ranks import RankTable
from tests.analyzers.made_layers import Floats


def table(value: Floats) -> RankTable:
    rows, ranks = value.shape
    return RankTable(np.arange(rows), tuple(range(ranks)), value, np.ones(value.shape, bool))


def made(ranks: int, rows: int = 600, seed: int = 0) -> tuple[Floats, Floats]:
    """(gradient norms, losses) of a run that learns; a batch that is harder has more of both."""
    rng = np.random.default_rng(seed)
    hard = 0.3 * rng.standard_normal((rows, ranks))
    level = 1 + 2 * np.exp(-np.arange(rows) / 150)[:, None]
    return 0.5 * np.exp(hard + 0.2 * rng.standard_normal((rows, ranks))), level * (1 + 0.2 * hard)


def by_heart(norms: Floats, losses: Floats, rank: int, start: int) -> None:
    """Rank `rank` is given one batch for ever from row `start` on."""
    later = np.arange(len(norms) - start)
    norms[start:, rank] *= np.exp(-2 * (1 - np.exp(-later / 25)))
    losses[start:, rank] *= np.exp(-0.6 * (1 - np.exp(-later / 25)))


@pytest.mark.parametrize("ranks", [2, 4, 8])
@pytest.mark.parametrize("seed", range(3))
def test_fires_where_a_rank_learns_its_batch_by_heart(ranks: int, seed: int) -> None:
    norms, losses = made(ranks, seed=seed)
    by_heart(norms, losses, 1, 250)
    found = sinking(table(norms), table(losses))
    assert found is not None
    assert (found.rank, found.last_step) == (1, 599)
    assert found.step == pytest.approx(255, abs=15)
    assert found.ratio < 0.3
    assert found.fall > 0.2


@pytest.mark.parametrize("seed", range(8))
def test_quiet_on_ranks_alike(seed: int) -> None:
    norms, losses = made(4, seed=seed)
    assert sinking(table(norms), table(losses)) is None


def test_quiet_where_norms_alone_drift_apart() -> None:
    norms, losses = made(4)
    norms *= np.exp(-np.linspace(0, 2, 600)[:, None] * np.array([0, 0.3, 0.6, 1.0]))  # parts of a model, one per rank
    assert sinking(table(norms), table(losses)) is None


def test_quiet_where_it_comes_back() -> None:
    norms, losses = made(4)
    norms[250:400, 2] *= 0.1
    losses[250:400, 2] *= 0.5
    assert sinking(table(norms), table(losses)) is None


def test_quiet_where_the_other_of_two_rises() -> None:
    norms, losses = made(2)
    norms[300:, 0] *= 4
    losses[300:, 0] *= 1.5
    assert sinking(table(norms), table(losses)) is None


def test_threshold_is_two_thirds_of_the_usual_norm() -> None:
    norms, losses = made(8)
    norms = 0.5 * np.exp(0.2 * np.log(2 * norms))  # quiet ranks
    losses[300:, 1] *= 0.8
    for share, fires in ((0.75, False), (0.55, True)):
        lower = norms.copy()
        lower[300:, 1] *= share
        assert (sinking(table(lower), table(losses)) is not None) is fires


def test_a_long_run_is_looked_through_at_once() -> None:
    norms, losses = made(4, rows=100_000)
    begun = process_time()
    assert sinking(table(norms), table(losses)) is None
    assert process_time() - begun < 5
