"""GD214: loss events after a long stretch of small gradients."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest

from gdiag.analyzers.stale_second_moment import analyze
from gdiag.measures.run import RunView
from gdiag.model import Severity
from gdiag.schema import LayerColumn, Quantity
from tests.analyzers.made_runs import Floats, learning, view


def run(quiet: float = 0.3, *, rows: int = 300, jump: float = 8.0, seed: int = 0, **config: Any) -> RunView:
    """A spike at step 800 after `rows` steps with gradients of `quiet` times their size."""
    loss = learning()
    loss[800:840] += 2.0 * 0.5 ** (np.arange(40) / 8)
    return view({"loss": loss, "grad_norm": norms(quiet, rows, jump, seed)}, **config)


def norms(quiet: float, rows: int, jump: float, seed: int) -> Floats:
    grad = 0.5 * np.exp(np.random.default_rng(seed).normal(0, 0.1, 1000))
    grad[800 - rows : 799] *= quiet
    grad[799:803] *= quiet * jump
    return np.asarray(grad, dtype=np.float64)


def test_notes_a_quiet_stretch_that_ends_at_the_onset() -> None:
    (finding,) = analyze(run(beta2=0.999))
    assert (finding.severity, finding.where.step) == (Severity.INFO, 800)
    assert finding.number("quiet_ratio") == pytest.approx(0.3, rel=0.1)
    assert (finding.number("moment_rms") or 0) > 2.3
    assert "(assumed)" not in finding.message


def test_says_that_beta2_is_assumed() -> None:
    (finding,) = analyze(run())
    assert finding.measure("beta2_known") is False
    assert "0.999 (assumed)" in finding.message


def test_quiet_where_the_moment_follows_at_once() -> None:
    assert analyze(run(beta2=0.95)) == []


def test_quiet_without_a_quiet_stretch_or_without_a_jump() -> None:
    assert analyze(run(1.0)) == []
    assert analyze(run(jump=1.5)) == []
    assert [analyze(run(1.0, seed=seed, jump=20.0)) for seed in range(10)] == [[]] * 10


def test_gradients_that_shrink_all_along_are_no_quiet_stretch() -> None:
    loss, grad = learning(), norms(1.0, 300, 20.0, 0) * (1 + np.arange(1000) / 50.0) ** -0.7
    loss[800:840] += 2.0 * 0.5 ** (np.arange(40) / 8)
    assert analyze(view({"loss": loss, "grad_norm": grad})) == []


@pytest.mark.parametrize(("jump", "fires"), [(3.5, False), (9.0, True)])
def test_threshold_is_the_jump(jump: float, fires: bool) -> None:
    assert bool(analyze(run(jump=jump))) is fires


def test_rows_fifty_steps_apart_show_a_stretch_of_a_thousand_steps() -> None:
    loss: Floats = learning(160)
    grad: Floats = np.asarray(0.5 * np.exp(np.random.default_rng(0).normal(0, 0.1, 160)), dtype=np.float64)
    loss[100:104] += (1.0, 0.4, 0.2, 0.1)
    grad[76:100] *= 0.3
    grad[100] *= 3
    columns: dict[str, Floats] = {"step": np.arange(160, dtype=np.float64) * 50.0, "loss": loss, "grad_norm": grad}
    (finding,) = analyze(view(columns, beta2=0.999))
    assert finding.where.step == 5000
    assert analyze(view(columns, beta2=0.99)) == []


def test_moments_logged_every_ten_steps_are_judged_from_four_leads_on() -> None:
    loss, grad = learning(), norms(1.0, 300, 1.0, 0)
    loss[300:340] += 2.0 * 0.5 ** (np.arange(40) / 8)
    grad[200:299] *= 0.3
    grad[299:303] *= 2.4
    run = view({"loss": loss, "grad_norm": grad}, beta2=0.99)
    layer = np.ones(100)
    layer[29:31] = 5.0
    layers = pl.DataFrame({"step": np.arange(0, 1000, 10), "grad_norm:mlp": layer, "second_moment:mlp": np.ones(100)})
    keys = layers.with_columns(
        pl.lit("run").alias("run"), pl.lit(None, pl.Int32).alias("rank"), pl.lit(0, pl.Int32).alias("source"),
        pl.int_range(1, 101, dtype=pl.Int64).alias("line"),
    )  # fmt: skip
    quantities: tuple[Quantity, ...] = ("grad_norm", "second_moment")
    columns = tuple(LayerColumn(f"{q}:mlp", "mlp", q, 0, "mlp") for q in quantities)
    records = replace(run.records, layers=keys, layer_columns=columns)
    (finding,) = analyze(RunView(run.run, records))
    assert finding.number("measured_rms") == pytest.approx(5.0)
