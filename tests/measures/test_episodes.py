"""Episodes: persistence counts, single rows do not; onsets to the row."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gdiag.measures.baseline import baseline, resolution
from gdiag.measures.episodes import scan
from tests.measures.made import NOISES, Noise, climb, healthy, spike


@pytest.mark.parametrize("kind", NOISES)
@pytest.mark.parametrize("rows", [60, 200, 2000])
def test_healthy_curves_have_no_episode(kind: Noise, rows: int) -> None:
    assert [seed for seed in range(8) if scan(healthy(rows, kind, seed)).episodes] == []


@pytest.mark.parametrize("kind", ["gauss", "heavy", "ar", "skew"])
def test_a_spike_is_one_recovered_episode(kind: Noise) -> None:
    value = healthy(2000, kind, 3) + spike(2000, 1200, 1.5, 12)
    (found,) = scan(value).episodes
    assert abs(found.onset - 1200) <= (3 if kind == "ar" else 1)
    assert found.recovered
    assert 1.0 < found.excess < 2.2
    assert found.half_life is not None
    assert found.half_life[0] < 15
    assert found.half_life[1] > 8


@pytest.mark.parametrize("rows", [5, 8, 14])
def test_a_stretch_of_bad_rows_is_one_episode_that_ends_with_them(rows: int) -> None:
    value = healthy(2000, "gauss", 3)
    value[1200 : 1200 + rows] += 3.0 + 0.1 * np.arange(rows)
    (found,) = scan(value).episodes
    assert (found.onset, found.last, found.recovery) == (1200, 1199 + rows, 1200 + rows)


def test_single_rows_are_outliers_not_episodes() -> None:
    value = healthy(2000, "gauss", 1)
    value[[700, 1500]] += 3.0
    found = scan(value)
    assert found.episodes == ()
    assert found.outliers.tolist() == [700, 1500]


def test_a_level_that_stays_up_does_not_recover() -> None:
    (found,) = scan(healthy(2000, "gauss", 2) + climb(2000, 1000, 0.8, 3)).episodes
    assert abs(found.onset - 1000) <= 2
    assert not found.recovered
    assert found.after_effect == pytest.approx(0.8, abs=0.25)


def test_a_falling_step_is_no_episode() -> None:
    value = healthy(3000, "gauss", 4)
    value[1000:] -= 0.5
    value[2000:] -= 0.3
    assert scan(value).episodes == ()


def test_rounded_and_constant_values_are_quiet() -> None:
    assert scan(np.round(healthy(1000, "gauss", 5) / 50, 2)).episodes == ()
    flat = scan(np.full(300, 0.5))
    assert flat.episodes == ()
    assert len(flat.outliers) == 0
    assert resolution(np.round(healthy(1000, "gauss", 5), 1)) == pytest.approx(0.1, rel=0.01)


def test_the_level_ignores_masked_rows() -> None:
    value = np.concatenate([np.ones(200), np.full(100, 5.0), np.ones(100)])
    masked = (np.arange(400) >= 200) & (np.arange(400) < 300)
    assert baseline(value, masked).level.max() == 1.0


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 1000), st.floats(0.01, 100), st.floats(-50, 50))
def test_scale_and_offset_change_nothing(seed: int, factor: float, offset: float) -> None:
    value = healthy(600, "gauss", seed) + spike(600, 400, 2.0, 10)
    plain = [(e.onset, e.recovered) for e in scan(value).episodes]
    assert [(e.onset, e.recovered) for e in scan(value * factor + offset).episodes] == plain
    assert [p[0] for p in plain] == [pytest.approx(400, abs=3)]


def test_a_long_healthy_curve_has_no_episode() -> None:
    value = 3 + np.random.default_rng(0).normal(0, 0.1, 200_000)
    assert scan(value).episodes == ()
