"""Whole way from records to report with figures from the least to the largest float."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from gdiag.model import Run, Source
from gdiag.pipeline import diagnose
from gdiag.schema import Records
from gdiag.tables.show import around


@pytest.mark.parametrize("command", ["analyze", "show"])
def test_figures_from_the_least_to_the_largest_float_are_judged(command: str) -> None:
    draw = np.random.default_rng(3)
    scales = draw.choice([1.0, 1e300, -1e300, 1e-300, 1.7e308], size=(200, 3))
    base = np.column_stack([np.linspace(3, 2, 200), np.full(200, 1.0), np.full(200, 1e-3)])
    with np.errstate(over="ignore"):
        figures = base * scales
    frame = pl.DataFrame(figures, schema=["loss", "grad_norm", "lr"]).with_columns(
        rank=pl.lit(None, pl.Int32), run=pl.lit("run"), step=pl.int_range(200), source=pl.lit(0, pl.Int32),
        line=pl.int_range(1, 201),
    )  # fmt: skip
    records = Records(runs=(Run("run", None, (0,)),), sources=(Source("run.jsonl", "jsonl", 200),), steps=frame)
    report = diagnose(records)
    assert around(report, records, 100) if command == "show" else report.checked


def test_ranks_that_log_no_figure_for_a_stretch_are_judged_in_silence() -> None:
    steps, ranks = (part.ravel() for part in np.meshgrid(np.arange(200), np.arange(4), indexing="ij"))
    silent = (steps >= 50) & (steps < 90)
    frame = pl.DataFrame({"step": steps, "rank": ranks.astype(np.int32), "loss": 3 - steps / 200}).with_columns(
        step_time=pl.Series(np.where(silent, np.nan, 1 + 0.1 * (ranks == 2) + steps % 7 / 1000)),
        run=pl.lit("run"), source=pl.lit(0, pl.Int32), line=pl.int_range(1, 801),
    )  # fmt: skip
    assert diagnose(
        Records(runs=(Run("run", None, (0,)),), sources=(Source("run.jsonl", "jsonl", 800),), steps=frame)
    ).checked
