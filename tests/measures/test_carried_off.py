"""Weights that the updates carry off."""

from __future__ import annotations

from time import process_time

import numpy as np
import pytest

from gdiag.measures.carried_off import PACE, carried_off
from gdiag.measures.curves import Points
from gdiag.measures.gradients import total_of_layers
from tests.analyzers.made_layers import Floats, layered


def points(value: Floats) -> Points:
    rows = np.arange(len(value))
    return Points(rows, value, rows * 0, rows + 1)


def grown(pace: float, rows: int = 20, total: int = 400) -> Floats:
    """A norm that grows by `pace` a step over the first rows and hardly after that."""
    logs = np.minimum(np.arange(total), rows) * pace + 1e-4 * np.arange(total)
    return np.asarray(12.0 * np.exp(logs + 1e-4 * np.random.default_rng(0).standard_normal(total)))


@pytest.mark.parametrize("every", [1, 5])
def test_a_norm_that_grows_by_percents_a_step_is_found(every: int) -> None:
    norm, rate = grown(0.1), np.full(400, 0.3)
    found = carried_off(np.arange(400)[::every], norm[::every], points(rate))
    assert found is not None
    assert (found.step, found.last_step) == (0, 20)
    assert found.growth == pytest.approx(np.exp(2), rel=0.02)
    assert found.pace == pytest.approx(np.exp(0.1) - 1, rel=0.05)
    assert found.lr_share == 1.0


def test_threshold_is_two_percent_a_step() -> None:
    steps, rate = np.arange(400), points(np.full(400, 0.3))
    assert carried_off(steps, grown(0.8 * PACE), rate) is None
    assert carried_off(steps, grown(1.2 * PACE), rate) is not None


def test_quiet_on_usual_updates_and_small_rates() -> None:
    steps = np.arange(400)
    assert carried_off(steps, grown(0.004), points(np.full(400, 0.3))) is None
    assert carried_off(steps, grown(0.1), points(np.full(400, 1e-3))) is None
    assert carried_off(steps, grown(0.1), points(np.empty(0))) is None


def test_quiet_on_a_norm_that_jumps() -> None:
    norm = np.full(400, 12.0)
    norm[50:] *= 5
    assert carried_off(np.arange(400), norm, points(np.full(400, 0.3))) is None


def test_a_seldom_logged_norm_that_goes_on_growing_did_not_jump() -> None:
    norm = np.array([22.3, 184.0, 270.0, 284.0, 276.0, 260.0, 255.0, 250.0])
    found = carried_off(10 * np.arange(8), norm, points(np.full(80, 0.3)))
    assert found is not None
    assert (found.step, found.last_step) == (0, 30)


def test_the_stretch_begins_with_its_first_fast_step() -> None:
    norm = np.concatenate([np.full(100, 12.0), grown(0.1)[:100]])
    found = carried_off(np.arange(200), norm, points(np.full(200, 0.3)))
    assert found is not None
    assert found.step == pytest.approx(100, abs=1)


def test_quiet_on_parameters_that_begin_at_nothing() -> None:
    norm = 1.0 - np.exp(-np.arange(400) / 30)
    norm[0] = 1e-4
    assert carried_off(np.arange(400), norm, points(np.full(400, 0.01))) is None


def test_layers_make_a_total_where_all_are_logged() -> None:
    params = {"blocks.0.fc": np.full(50, 3.0), "blocks.1.fc": np.full(50, 4.0)}
    params["blocks.1.fc"][10] = np.nan
    table = layered(params=params).layer_table("param_norm")
    assert table is not None
    total = total_of_layers(table, whole=True)
    assert len(total) == 49
    assert total.value == pytest.approx(np.full(49, 5.0))
    assert len(total_of_layers(table)) == 50


def test_a_long_run_is_looked_through_at_once() -> None:
    rows = 300_000
    norm = grown(0.001, rows=rows // 300, total=rows)
    begun = process_time()
    assert carried_off(np.arange(rows), norm, points(np.full(rows, 0.3))) is None
    assert process_time() - begun < 2
