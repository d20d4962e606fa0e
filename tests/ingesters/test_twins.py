"""Runs of the same losses are found among many as if every pair were compared."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gdiag.ingesters.same_losses import Curve, curves, same
from gdiag.ingesters.twins import Shelf


def run(rng: np.random.Generator, seed: int) -> dict[str, Curve]:
    """A run of one of a few losses, logged in one of many ways."""
    count = int(rng.choice([1, 3, 20, 40, 300]))
    steps = int(rng.choice([0, 0, 7, 5000])) + int(rng.choice([1, 1, 2, 10])) * np.arange(count)
    if rng.random() < 0.3:
        steps = steps[np.sort(rng.choice(count, max(1, count - 5), replace=False))]
    losses = 3 + np.sin(seed + steps / 50) + np.round(rng.normal(0, float(rng.choice([0, 1e-4, 0.02])), len(steps)), 4)
    losses[rng.random(len(steps)) < 0.05] = np.nan
    names = [["loss"], ["loss"], ["eval_loss"], ["loss", "eval_loss"]][int(rng.integers(4))]
    table = pl.DataFrame({"step": steps, **{name: losses + (name != "loss") for name in names}})
    return curves(table)


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 10**6))
def test_the_first_of_all_pairs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shelf = Shelf()
    for _ in range(40):
        new = run(rng, int(rng.integers(4)))
        expected = next((i for i, known in enumerate(shelf.runs) if same(known, new)), None)
        assert shelf.twin(new) == expected
        if expected is None:
            shelf.add(new)


def test_nothing_is_no_twin() -> None:
    shelf = Shelf()
    for empty in (
        {},
        curves(None),
        curves(pl.DataFrame({"step": [1], "loss": [None]}, schema={"step": pl.Int64, "loss": pl.Float64})),
    ):
        shelf.add(empty)
        assert shelf.twin(empty) is None


def test_most_runs_are_told_apart_at_a_few_places() -> None:
    rng = np.random.default_rng(1)
    shelf = Shelf()
    steps = np.arange(500)
    likely = 0
    for i in range(200):
        new = {"loss": (steps[: 500 - i], 3 + rng.normal(0, 0.5, 500 - i))}
        likely += len(shelf.likely(new))
        shelf.add(new)
    assert likely < 20


def test_uneven_runs_are_found_by_some_of_their_points() -> None:
    rng = np.random.default_rng(1)
    shelf = Shelf()
    likely = 0
    known = []
    for _ in range(200):
        steps = np.sort(rng.choice(2000, 600, replace=False))
        new = {"loss": (steps, 3 + rng.normal(0, 0.1, 600))}
        likely += len(shelf.likely(new))
        shelf.add(new)
        known.append(new["loss"])
    assert likely < 400
    for number in (3, 150):
        steps, losses = known[number]
        for count in (20, 100, 500):
            at = np.sort(rng.choice(600, count, replace=False))
            assert shelf.twin({"loss": (steps[at], losses[at].round(4))}) == number


def test_a_long_run_finds_a_short_one() -> None:
    rng = np.random.default_rng(1)
    steps = np.sort(rng.choice(20_000, 9000, replace=False))
    losses = 3 + rng.normal(0, 0.02, 9000)
    shelf = Shelf()
    at = np.sort(rng.choice(9000, 40, replace=False))
    shelf.add({"loss": (steps[at], losses[at])})
    assert shelf.twin({"loss": (steps, losses)}) == 0


def curve_of(losses: np.ndarray[tuple[int], np.dtype[np.float64]]) -> dict[str, Curve]:
    return {"loss": (np.arange(len(losses)), losses)}


@pytest.mark.parametrize("written", ["%.2f", "%.4f", "%.3g", "%.6g", "%.9g"])
def test_the_digits_written_decide_how_close_is_the_same(written: str) -> None:
    rng = np.random.default_rng(6)
    loss = 11 * np.exp(-np.arange(300) / 60) + 0.05 + 0.01 * rng.random(300)
    short = np.array([float(written % value) for value in loss])
    assert same(curve_of(loss), curve_of(short))
    assert same(curve_of(short), curve_of(loss.astype(np.float32).astype(np.float64)))


def test_two_seeds_of_one_configuration_are_two_runs() -> None:
    rng = np.random.default_rng(7)
    loss = 2 + np.exp(-np.arange(300) / 60)
    one, other = (np.round(loss * (1 + 0.002 * rng.standard_normal(300)), 4) for _ in range(2))
    assert not same(curve_of(one), curve_of(other))
    shelf = Shelf()
    shelf.add(curve_of(one))
    assert shelf.twin(curve_of(other)) is None
    assert shelf.twin(curve_of(one)) == 0


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("size", [5e-324, 1e306])
def test_losses_at_the_ends_of_the_doubles(size: float) -> None:
    curve = curve_of(np.array([i * size for i in range(1, 41)]))
    assert same(curve, curve)


def test_evaluations_alone_show_one_run() -> None:
    steps, rng = np.arange(0, 9000, 900), np.random.default_rng(3)
    batches = {"loss": (np.arange(100), 3 + rng.random(100)), "eval_loss": (steps, 4 + rng.random(10))}
    evaluations = {"loss": (steps, 3.5 + rng.random(10)), "eval_loss": batches["eval_loss"]}
    assert same(batches, evaluations)
    other = {**evaluations, "eval_loss": (steps, 4 + rng.random(10))}
    assert not same(batches, other)
    shelf = Shelf()
    shelf.add(batches)
    assert (shelf.twin(other), shelf.twin(evaluations)) == (None, 0)


@pytest.mark.parametrize("told", [np.nan, 0.0, 0.693])
def test_evaluations_that_never_change_show_nothing(told: float) -> None:
    steps, rng = np.arange(0, 200, 40), np.random.default_rng(5)
    evaluated = {"eval_loss": (steps, np.full(5, told))}
    batches = [{"loss": (np.arange(200) + at, 3 + rng.random(200))} for at in (0, 0, 500)]
    assert not same({**batches[0], **evaluated}, {**batches[1], **evaluated})
    assert not same({**batches[0], **evaluated}, {**batches[2], **evaluated})
    assert not same(evaluated, evaluated)


def test_other_losses_of_training_are_other_runs() -> None:
    rng = np.random.default_rng(8)
    evaluated = {"eval_loss": (np.arange(0, 200, 20), 4 + rng.random(10))}
    one, other = ({**evaluated, **curve_of(3 + rng.random(200))} for _ in range(2))
    assert not same(one, other)
    assert same(one, {**other, "loss": one["loss"]})
