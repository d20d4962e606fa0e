from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from gdiag.measures import association

ROWS = 5000
Ints = NDArray[np.int64]


def scattered(rng: np.random.Generator, n: int, burst: int = 1) -> Ints:
    starts = rng.choice(np.arange(10, ROWS - 60), n, replace=False)
    return np.unique((starts[:, None] + np.arange(burst)[None, :]).ravel())


def follows(a: Ints, b: Ints, seed: int = 0) -> association.Association | None:
    return association.follows(a, b, ROWS, names=("a", "b"), seed=seed)


def test_events_that_follow_are_found() -> None:
    rng = np.random.default_rng(1)
    first = scattered(rng, 8)
    second = np.concatenate([first[:6] + 1, scattered(rng, 40)])
    found = follows(first, second)
    assert found is not None
    assert found.followed >= 6
    assert found.p < 0.005
    assert found.chance < 0.2


def test_independent_events_are_rarely_found_even_in_bursts() -> None:
    for burst in (1, 5, 20):
        alarms = 0
        for seed in range(60):
            rng = np.random.default_rng(seed)
            found = follows(scattered(rng, 12, burst), scattered(rng, 15, burst), seed)
            alarms += found is not None and found.p <= 0.01
        assert alarms <= 2, burst


def test_a_shared_trend_is_no_association() -> None:
    alarms = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        late = np.sort((ROWS * np.sqrt(rng.random(40))).astype(int))
        other = np.sort((ROWS * np.sqrt(rng.random(40))).astype(int))
        found = follows(np.clip(late, 0, ROWS - 1), np.clip(other, 0, ROWS - 1), seed)
        alarms += found is not None and found.p <= 0.01
    assert alarms <= 2


def test_too_few_events_are_not_tested() -> None:
    assert follows(np.array([5, 900]), np.array([6, 901, 1500, 2000])) is None


def test_bursts_are_one_episode() -> None:
    assert association.episodes(np.array([7, 8, 9, 30, 31, 80]), 2).tolist() == [7, 30, 80]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.floats(0.0001, 1.0), max_size=30), st.floats(0.01, 0.2))
def test_the_correction_is_stricter_than_no_correction(p: list[float], q: float) -> None:
    held = association.significant(np.array(p), q)
    assert all(value <= q for value, ok in zip(p, held, strict=True) if ok)
    if len(p) == 1:
        assert bool(held[0]) == (p[0] <= q)
