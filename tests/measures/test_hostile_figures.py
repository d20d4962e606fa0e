"""Figures as large as floats go, and as many ranks as a machine room holds."""

from __future__ import annotations

import numpy as np
import polars as pl

from gdiag.measures.curves import Curve, Floats, Path
from gdiag.measures.loss_units import factors
from gdiag.measures.trajectory import trajectory


def _curve(value: Floats) -> Curve:
    steps = np.arange(len(value))
    frame = pl.DataFrame({"step": steps, "loss": value}).with_columns(source=pl.lit(0, pl.Int32), line=pl.col("step"))
    return Path("trajectory", frame, 0).curve("loss")


def test_a_ratio_beyond_every_float_is_no_factor() -> None:
    for low, high in ((1e-300, 1e300), (1e300, 1e-300), (5e-324, 1.0), (1.0, 5e-324)):
        value = np.repeat([low, high], 60)
        with np.errstate(all="ignore"):
            assert factors(_curve(value), [60]) == []


def test_ten_thousand_ranks_are_laid_out_in_one_pass() -> None:
    ranks, steps = 10_000, 3
    frame = pl.DataFrame(
        {
            "rank": pl.Series(np.tile(np.arange(ranks), steps), dtype=pl.Int32),
            "step": np.repeat(np.arange(steps), ranks),
            "loss": np.full(ranks * steps, 2.0),
        }
    ).with_columns(source=pl.lit(0, pl.Int32), line=pl.int_range(1, pl.len() + 1), run=pl.lit("run"))
    found = trajectory(frame)
    assert found.paths[0].frame["step"].to_list() == [0, 1, 2]
