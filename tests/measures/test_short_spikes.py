"""Spikes of one to three rows: what is told, and how often noise alone is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from gdiag.measures.baseline import Floats
from gdiag.measures.curves import Path
from gdiag.measures.episodes import scan
from gdiag.measures.short_spikes import WINDOWS, Window, rarities, short_spikes, unlikely
from tests.measures.made import healthy

AT = 1200


def told(heights: list[float], norms: list[float] | None = None, rows: int = 2000) -> list[tuple[int, int]]:
    """The stretches found where rows from AT on stand `heights` robust deviations above the loss, `norms` above log norms."""
    rng = np.random.default_rng(4)
    loss, norm = healthy(rows, "gauss", 3), rng.normal(0, 1, rows)
    clean = scan(loss)
    loss[AT : AT + len(heights)] += (
        np.array(heights) * clean.base.scale[AT] - (loss - clean.base.level)[AT : AT + len(heights)]
    )
    columns = {"step": np.arange(rows), "loss": loss}
    if norms is not None:
        norm[AT : AT + len(norms)] = norms
        columns["grad_norm"] = np.exp(0.1 * norm)
    frame = pl.DataFrame(columns).with_columns(source=pl.lit(0), line=pl.int_range(1, rows + 1))
    path = Path("trajectory", frame, 0)
    return short_spikes(path, scan(loss), float(loss[0]))


@pytest.mark.parametrize(
    ("heights", "norms", "rows"),
    [
        ([30.0], None, 1), ([8.0], None, 0), ([7.0], [7.0], 1), ([7.0], [0.0], 0), ([5.0], [9.0], 1), ([4.0], [9.0], 0), ([8.0, 8.0], None, 2),
        ([8.0, 0.0], None, 0), ([8.0, 5.0, 3.0], None, 3), ([9.0, 4.0], [9.0, 4.0], 2), ([7.0, 3.0, 3.0], [5.0, 3.0, 3.0], 3),
    ],
)  # fmt: skip
def test_rows_in_a_row_and_columns_together_need_less_than_a_row_alone(
    heights: list[float], norms: list[float] | None, rows: int
) -> None:
    found = told(heights, norms)
    assert [(first, last - first + 1) for first, last in found] == ([(AT, rows)] if rows else [])


def test_a_level_that_stays_up_is_no_short_spike() -> None:
    assert told([9.0, 9.0, 4.0, 4.0, 4.0, 4.0, 4.0, 4.0, 4.0]) == []


def test_the_budget_of_all_windows_is_a_third_of_an_alarm() -> None:
    assert sum(window.rate for window in WINDOWS) < 1 / 3
    assert {window.rows for window in WINDOWS} == {1, 2, 3}


def test_a_short_run_is_given_the_least_figure_of_its_window_and_a_long_one_its_rate() -> None:
    rng = np.random.default_rng(11)
    cells = rng.normal(size=(1, 1000))
    cells[0, 500] = 12.0
    high = cells[0] > 11

    def found(least: float, rate: float) -> bool:
        return bool(
            unlikely(rarities(cells, np.ones(1000, dtype=bool)), replace(WINDOWS[-1], least=least, rate=rate), high)
        )

    assert found(least=0.05, rate=0.0)
    assert not found(least=1e-6, rate=0.0)
    assert found(least=0.0, rate=5.0)
    assert not found(least=0.0, rate=1e-4)


def noise(kind: str, rows: int, rng: np.random.Generator) -> Floats:
    """Two columns of rows: independent or heavy-tailed ones, correlated rows, hard batches in both columns."""
    cells = rng.standard_t(3, (2, rows)) if kind == "heavy" else rng.normal(size=(2, rows))
    if kind == "correlated":
        for row in range(1, rows):
            cells[:, row] = 0.6 * cells[:, row - 1] + 0.8 * cells[:, row]
    if kind == "hard batches":
        cells += (rng.random(rows) < 0.03) * rng.exponential(4.0, rows)
    return cells


@pytest.mark.parametrize("kind", ["normal", "heavy", "correlated", "hard batches"])
@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (1, 2), (2, 1), (2, 2), (3, 1), (3, 2)])
def test_noise_is_told_as_often_as_it_may_be(kind: str, rows: int, columns: int) -> None:
    """One run in twenty where the budget is a twentieth of a window per run; 200 runs, three standard errors.

    Hard batches are the exception for single rows, where a run of 300 rows holds too few of them to show their tail.
    """
    window = Window(rows, with_gradient=columns == 2, share=0.0, most=1, least=0.05)
    rng, every = np.random.default_rng(7), np.ones(300, dtype=bool)
    alarms = sum(bool(unlikely(rarities(noise(kind, 300, rng)[:columns], every), window, every)) for _ in range(200))
    expected = 200 * 0.05 * (5 if kind == "hard batches" and rows == 1 else 1)
    assert alarms <= expected + 3 * np.sqrt(expected)


def test_single_rows_are_told_together_only_beyond_the_tail_of_the_rest() -> None:
    rng, every = np.random.default_rng(5), np.ones(2000, dtype=bool)
    cells = rng.normal(size=(1, 2000))
    single = replace(WINDOWS[-1], rate=0.05)
    cells[0, [300, 900, 1500]] = 25.0
    assert unlikely(rarities(cells, every), single, cells[0] > 20) == [300, 900, 1500]
    cells[0, 100:2000:100] = 15.0
    assert unlikely(rarities(cells, every), single, cells[0] > 20) == []
