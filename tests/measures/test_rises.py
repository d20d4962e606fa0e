from __future__ import annotations

import numpy as np
import pytest

from gdiag.measures.rises import step_up
from tests.analyzers.made_runs import view
from tests.measures.made import NOISES, Noise, climb, healthy


def loud(rows: int, seed: int, height: float = 0.0, at: int = 0) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """A fine-tuning loss with noise of a quarter of its level, and a step of `height` from row `at` on."""
    rng = np.random.default_rng(seed)
    level = 1.0 + np.exp(-np.arange(rows) / (rows / 20))
    level[at:] += height
    return np.asarray(level * (1 + 0.25 * (rng.gamma(8.0, 1.0, rows) - 8) / np.sqrt(8)))


@pytest.mark.parametrize(("rows", "at", "height"), [(400, 230, 0.35), (2000, 900, 0.25), (2000, 1300, 0.2)])
def test_a_small_step_in_loud_noise_is_found_near_its_row(rows: int, at: int, height: float) -> None:
    found = [step_up(loud(rows, seed, height, at)) for seed in range(6)]
    seen = [step for step in found if step is not None]
    assert len(seen) >= 5
    assert np.median([abs(step.onset - at) for step in seen]) <= 12
    assert np.median([step.height for step in seen]) == pytest.approx(height, rel=0.4)


@pytest.mark.parametrize("noise", NOISES)
def test_healthy_curves_have_no_step(noise: Noise) -> None:
    assert [seed for seed in range(12) if step_up(healthy(1500, noise, seed))] == []
    assert [seed for seed in range(12) if step_up(loud(1500, seed))] == []


def test_a_slow_climb_is_no_step() -> None:
    value = healthy(3000, "gauss", 2, stops=1000) + climb(3000, 1200, 0.6, 1500)
    assert step_up(value) is None


def test_a_run_that_swings_has_no_step_among_its_swings() -> None:
    swings = 0.2 * np.sign(np.sin(np.arange(2000) / 100))
    assert step_up(1.5 + swings + 0.1 * np.random.default_rng(1).standard_normal(2000)) is None


def test_a_small_step_is_an_event_of_the_loss() -> None:
    (event,) = view({"loss": loud(2000, 1, 0.3, 1200)}).losses[0].events
    assert event.kind == "step_up"
    assert abs(event.onset - 1200) <= 12
