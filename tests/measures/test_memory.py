from __future__ import annotations

import numpy as np

from gdiag.measures import memory

GIB = 2.0**30


def test_a_leak_is_a_climb() -> None:
    rng = np.random.default_rng(0)
    use = GIB * (40 + 20 * np.linspace(0, 1, 2000) + 0.1 * rng.standard_normal(2000))
    found = memory.growth(use)
    assert found is not None
    assert 55 < found.after / GIB < 61


def test_an_allocator_that_fills_up_early_is_none() -> None:
    use = np.full(2000, 60 * GIB)
    use[:300] = 40 * GIB
    assert memory.growth(use) is None


def test_steps_of_an_allocator_late_in_the_run_are_none() -> None:
    use = np.full(2000, 40 * GIB)
    use[1200:] = 44 * GIB
    assert memory.growth(use) is None


def test_noise_is_none() -> None:
    rng = np.random.default_rng(1)
    assert memory.growth(GIB * (40 + rng.standard_normal(2000))) is None
    assert memory.growth(np.full(30, GIB)) is None


def test_a_climb_without_a_pause_is_one() -> None:
    rng = np.random.default_rng(2)
    t = np.linspace(0, 1, 2000)
    use = GIB * (56 + 15 * t + 0.4 * np.sin(9 * t) + 0.02 * rng.standard_normal(2000))
    assert memory.growth(use) is not None


def test_a_climb_of_few_rows_is_one_and_their_noise_is_none() -> None:
    rng = np.random.default_rng(3)
    noise = 0.1 * rng.standard_normal(50)
    assert memory.growth(GIB * (40 + np.linspace(0, 12, 50) + noise)) is not None
    assert memory.growth(GIB * (40 + noise)) is None
    assert memory.growth(GIB * (40 + np.linspace(0, 12, 40) + noise[:40])) is None
