"""Schedule recognition: shapes, their corners, and jumps that no shape explains."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from gdiag.measures.schedule import recognise
from tests.benchmarks.schedules import SHAPES, case, confusion

Floats = NDArray[np.float64]


def cosine(total: int = 1000, warmup: int = 50, peak: float = 3e-4, floor: float = 0.1) -> Floats:
    t = np.arange(total)
    u = np.clip((t - warmup) / (total - warmup), 0, 1)
    return peak * np.where(t < warmup, (t + 1) / warmup, floor + (1 - floor) * 0.5 * (1 + np.cos(np.pi * u)))


def test_names_generated_schedules() -> None:
    found = confusion(5000, 64)
    right = sum(n for (true, seen), n in found.items() if true == seen)
    assert right / found.total() >= 0.95, found


@pytest.mark.parametrize("seed", range(6000, 6000 + 2 * len(SHAPES)))
def test_corners_lie_within_two_rows(seed: int) -> None:
    given_case = case(seed)
    seen = recognise(given_case.step, given_case.lr)
    assert seen is not None
    slack = 2 * given_case.stride + 0.02 * given_case.warmup
    assert abs(seen.warmup_steps - given_case.warmup) <= slack
    coarse = given_case.warmup and given_case.warmup < 4 * given_case.stride
    assert seen.peak == pytest.approx(given_case.peak, rel=0.15 if coarse else 0.03)
    if given_case.decay_start is not None:
        assert seen.decay_start is not None
        assert abs(seen.decay_start - given_case.decay_start) <= slack + 0.08 * len(given_case.step) * given_case.stride


def test_nothing_to_recognise_in_two_rows_or_zeros() -> None:
    assert recognise(np.arange(2), np.array([1e-3, 1e-3])) is None
    assert recognise(np.arange(9), np.zeros(9)) is None


@pytest.mark.parametrize(("at", "rows"), [(500, 1), (500, 4), (300, 40)])
def test_transient_jump_is_found_with_its_end(at: int, rows: int) -> None:
    lr = cosine()
    lr[at : at + rows] *= 50
    seen = recognise(np.arange(len(lr)), lr)
    assert seen is not None
    (jump,) = seen.jumps
    assert (jump.step, jump.last_step, jump.returns) == (at, at + rows - 1, True)
    assert jump.ratio == pytest.approx(50, rel=0.01)
    assert seen.shape == "cosine"


def test_lasting_jump_leaves_the_shape_before_it() -> None:
    lr = cosine()
    lr[600:] *= 30
    seen = recognise(np.arange(len(lr)), lr)
    assert seen is not None
    assert seen.shape == "cosine"
    assert [(j.step, j.returns, j.last_step) for j in seen.jumps] == [(600, False, 999)]


@pytest.mark.parametrize("factor", [1.3, 10.0])
def test_rise_of_a_constant_rate_is_no_plan(factor: float) -> None:
    lr = np.full(400, 1e-3)
    lr[200:] *= factor
    seen = recognise(np.arange(400), lr)
    assert seen is not None
    assert [j.step for j in seen.jumps] == [200]


def test_drops_between_levels_are_planned() -> None:
    lr = np.repeat([1e-3, 3e-4, 9e-5], 200)
    seen = recognise(np.arange(600), lr)
    assert seen is not None
    assert (seen.shape, seen.changes, seen.jumps) == ("step", (200, 400), ())


def test_drop_out_of_a_falling_curve_is_not_planned() -> None:
    lr = cosine()
    lr[300:] = 2e-7
    seen = recognise(np.arange(len(lr)), lr)
    assert seen is not None
    assert [j.step for j in seen.jumps] == [300]
    assert seen.peak == pytest.approx(3e-4)


def test_rate_refreshed_every_k_steps_is_one_curve() -> None:
    lr = np.repeat(cosine(100, 5), 20)
    seen = recognise(np.arange(len(lr)), lr)
    assert seen is not None
    assert (seen.shape, seen.jumps) == ("cosine", ())


@settings(max_examples=12, deadline=None)
@given(scale=st.floats(1e-3, 1e3), offset=st.integers(0, 100_000), seed=st.integers(0, 63))
def test_scale_and_step_offset_change_nothing(scale: float, offset: int, seed: int) -> None:
    given_case = case(seed)
    plain = recognise(given_case.step, given_case.lr)
    moved = recognise(given_case.step + offset, given_case.lr * 2.0 ** round(np.log2(scale)))
    assert plain is not None
    assert moved is not None
    if given_case.shape != "inverse-sqrt":
        assert (moved.shape, len(moved.jumps)) == (plain.shape, len(plain.jumps))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(0, 1e3, allow_subnormal=False), min_size=3, max_size=40))
def test_any_column_is_survived(values: list[float]) -> None:
    recognise(np.arange(len(values)), np.array(values))


def test_settings_name_what_the_column_shows() -> None:
    step = np.arange(1000)
    lr = np.interp(step, [0, 100, 800, 999], [0.0, 1e-3, 1e-3, 1e-4])
    found = recognise(step, lr)
    assert found is not None
    said = found.settings()
    assert (said["lr_schedule"], said["lr_warmup_steps"], said["lr_decay_start"]) == ("wsd", 100, 800)
    assert said["lr_peak"] == pytest.approx(1e-3)
    constant = recognise(step, np.full(1000, 3e-4))
    assert constant is not None
    assert "lr_decay_start" not in constant.settings()


@pytest.mark.parametrize(("epochs", "shape"), [(30, "cosine"), (8, None), (3, "warmup")])
def test_a_schedule_stepped_once_an_epoch_is_the_curve_behind_it(epochs: int, shape: str | None) -> None:
    k = np.arange(epochs)
    rates = np.where(k < 5, 1e-6 + 2e-4 * k, 1e-5 + 5e-4 * (1 + np.cos(np.pi * k / epochs)))
    seen = recognise(50 * np.arange(25 * epochs), np.repeat(rates, 25))
    assert seen is not None
    assert seen.jumps == ()
    assert shape is None or seen.shape == shape


def test_equal_drops_at_equal_distances_stay_a_step_schedule() -> None:
    seen = recognise(np.arange(900), np.repeat([0.1, 0.01, 0.001], 300))
    assert seen is not None
    assert seen.shape == "step"
    assert seen.jumps == ()
