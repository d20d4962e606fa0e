"""Parameter norms: jumps beyond the optimizer's step, trends, sustained growth."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gdiag.measures.growth import sustained_growth
from gdiag.measures.parameters import jumps, last_digit, trend
from tests.analyzers.made_layers import Floats, layered, names


def walk(rows: int, blocks: int, lr: Floats, seed: int = 0) -> dict[str, Floats]:
    """Norms that move by up to the learning rate times a factor of their own each row."""
    rng = np.random.default_rng(seed)
    return {n: 5 + np.cumsum(lr * rng.uniform(0.5, 2) * rng.normal(0.5, 0.5, rows)) for n, _, _ in names(blocks)}


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**31))
def test_updates_are_no_jumps_even_when_the_rate_jumps(seed: int) -> None:
    lr = np.full(400, 1e-3)
    lr[200:230] *= 25
    view = layered(params=walk(400, 3, lr, seed), steps={"lr": lr})
    table = view.layer_table("param_norm")
    assert table is not None
    assert jumps(table, view.series("lr"), 20.0) == []
    assert jumps(table, None, 8.0) != []


def test_growth_from_row_to_row_is_no_jump() -> None:
    norm = 3.0 + np.cumsum(np.random.default_rng(0).normal(0, 1e-3, 200))
    norm *= np.exp(0.4 * np.clip(np.arange(200) - 120, 0, 16))  # sixhundredfold in sixteen rows
    table = layered(params={"blocks.0.qkv": norm}).layer_table("param_norm")
    assert table is not None
    assert [jump.row for jump in jumps(table) if jump.row > 121] == []


@pytest.mark.parametrize("every", [1, 10])
def test_a_flipped_bit_is_one_jump(every: int) -> None:
    lr = np.full(400, 1e-3)
    params = walk(400, 3, lr)
    params["blocks.1.out"][250:] += 2.5
    view = layered(params=params, steps={"lr": lr}, every=every)
    table = view.layer_table("param_norm")
    assert table is not None
    (found,) = jumps(table, view.series("lr"), 20.0)
    assert table.columns[found.layer].layer == "blocks.1.out"
    assert (found.row, int(table.step[found.row])) == (250, 250 * every)
    assert found.excess > 100
    assert found.share > 0.3


def test_rounded_norms_are_no_jumps() -> None:
    params = {n: np.round(v, 3) for n, v in walk(300, 2, np.full(300, 1e-5)).items()}
    table = layered(params=params).layer_table("param_norm")
    assert table is not None
    assert jumps(table) == []


def test_norms_of_three_digits_move_by_a_unit_where_they_are_large() -> None:
    """At 0.05 the last digit is 1e-4, at 5.8 it is 0.01: that a norm has moved by less later makes no jump of it."""
    rows = np.arange(600)
    fall = np.where(rows < 300, 5.81 - 2e-4 * rows, 5.75 * np.exp(-(rows - 300) / 60))
    lr = np.minimum(1.0, (rows + 1) / 30) * 1e-3
    written = np.array([float(f"{v:.3g}") for v in fall])
    view = layered(params={n: written for n, _, _ in names(2)}, steps={"lr": lr})
    table = view.layer_table("param_norm")
    assert table is not None
    assert [jump for jump in jumps(table, view.series("lr")) if jump.row < 300] == []


def test_the_last_digit_is_that_of_the_column() -> None:
    few, many = np.array([5.79, 0.123, 0.0, 121.0, np.nan]), np.array([5.79, 0.123456789, 1.0, 1.0, 2.0])
    unit = last_digit(np.column_stack([few, many]))
    assert unit[:4, 0] == pytest.approx([0.01, 0.001, 0.01, 1.0])
    assert unit[:, 1] == pytest.approx(1e-6 * many)


def test_gaps_and_non_finite_values_are_bridged() -> None:
    params = walk(300, 2, np.full(300, 1e-3))
    params["wte"][100:120] = np.nan
    params["lm_head"][200:] = np.inf
    table = layered(params=params).layer_table("param_norm")
    assert table is not None
    assert jumps(table, None, 30.0) == []


def test_trend_is_the_theil_sen_slope() -> None:
    rng = np.random.default_rng(0)
    found = trend(np.arange(600) * 0.01 + rng.normal(0, 0.1, 600))
    assert found is not None
    assert found.total == pytest.approx(6.0, rel=0.1)
    assert found.z > 4
    flat = trend(rng.normal(0, 1, 600))
    assert flat is not None
    assert abs(flat.z) < 4
    assert trend(np.arange(3.0)) is None


def test_growth_must_pass_the_level_and_stay() -> None:
    value = np.concatenate([np.full(200, 10.0), np.geomspace(10, 2000, 200), np.full(100, 2000.0)])
    found = sustained_growth(value, 100, 3)
    assert found is not None
    assert 280 <= found.row <= 300
    assert found.factor == pytest.approx(200)
    assert found.z > 4
    assert sustained_growth(value, 3000, 3) is None
    assert sustained_growth(value[::-1].copy(), 100, 3) is None
    assert sustained_growth(np.full(100, 500.0), 100, 3) is None


def test_norms_written_with_four_digits_are_no_jumps() -> None:
    lr = np.concatenate([np.linspace(1e-6, 1e-3, 100), np.full(200, 1e-3)])
    params = {n: np.array([float(f"{x:.4g}") for x in v]) for n, v in walk(300, 3, lr).items()}
    view = layered(params=params, steps={"lr": lr})
    table = view.layer_table("param_norm")
    assert table is not None
    assert jumps(table, view.series("lr"), 20.0) == []
