"""Whole way from records to report with columns missing, empty, constant or not finite: nothing that a log may hold raises."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from gdiag.ingesters import load
from gdiag.pipeline import diagnose
from gdiag.renderers import json_v1, terminal
from gdiag.schema import KEYS, Records

SAMPLES = (
    "spike.jsonl", "nan-after-rise.jsonl", "divergence.log", "lr-decayed-early.csv", "resume-optimizer.jsonl", "bad-shard.jsonl.gz",
    "repeated-spikes.csv", "dead-layer.jsonl.gz", "overflow-layer.jsonl.gz", "replica-divergence.jsonl.gz", "thermal-throttling",
)  # fmt: skip
VALUES = (0.0, float("nan"), float("inf"), float("-inf"), 1e300, -1.0, 1e-300)


@cache
def sample(name: str) -> Records:
    return load([Path(__file__).parent.parent / "sample_logs" / name])


def marred(frame: pl.DataFrame, draw: np.random.Generator, share: float) -> pl.DataFrame:
    """A frame of which columns are gone, have holes, or hold one odd value over a stretch or to the end."""
    metrics = [c for c, kind in frame.schema.items() if c not in KEYS and kind == pl.Float64]
    frame = frame.drop([c for c in metrics if draw.random() < share])
    rows = np.arange(frame.height)
    for name in [c for c in metrics if c in frame.columns and draw.random() < 0.5]:
        if draw.random() < 0.3:
            held = pl.Series(draw.random(frame.height) > draw.choice([0.05, 0.5, 0.95]))
            frame = frame.with_columns(pl.when(held).then(pl.col(name)).alias(name))
            continue
        first = int(draw.integers(frame.height)) if draw.random() < 0.7 else 0
        odd = pl.Series((rows >= first) & (rows < first + int(draw.choice([1, 3, 20, frame.height]))))
        frame = frame.with_columns(pl.when(odd).then(float(draw.choice(VALUES))).otherwise(pl.col(name)).alias(name))
    return frame


@pytest.mark.parametrize("seed", range(66))
def test_no_column_is_taken_for_granted(seed: int) -> None:
    draw = np.random.default_rng(seed)
    records = sample(SAMPLES[seed % len(SAMPLES)])
    steps = marred(records.steps, draw, 0.35)
    if draw.random() < 0.3:
        steps = steps.head(int(draw.choice([1, 2, 3, 5, 12, 40])))
    layers = records.layers if records.layers is None else marred(records.layers, draw, 0.1)
    report = diagnose(replace(records, steps=steps, layers=layers))
    assert json_v1.render(report)
    assert terminal.render(report)


@pytest.mark.parametrize("name", ["dead-layer.jsonl.gz", "overflow-layer.jsonl.gz"])
def test_layers_alone_beside_a_loss_that_is_lost(name: str) -> None:
    records = sample(name)
    assert records.layers is not None
    norms = [c for c in records.layers.columns if c.startswith("grad_norm:")]
    lost = pl.when(pl.col("step") >= pl.col("step").median()).then(float("nan")).otherwise(pl.col("loss"))
    steps = records.steps.drop("grad_norm").with_columns(loss=lost)
    for layers in (records.layers, records.layers.with_columns([pl.lit(0.0).alias(c) for c in norms])):
        found = diagnose(replace(records, steps=steps, layers=layers)).findings
        assert "GD101" in {finding.code for finding in found}


def test_an_overflow_beside_a_scale_that_never_moves_is_written() -> None:
    records = sample("overflow-layer.jsonl.gz")
    assert records.layers is not None
    norms = [c for c in records.layers.columns if c.startswith("grad_norm:")]
    row = pl.col("step") == pl.col("step").median().cast(pl.Int64)
    inf = [pl.when(row).then(float("inf")).otherwise(1.0).alias(c) for c in norms]
    steps = records.steps.drop("grad_norm").with_columns(loss=pl.lit(3.0), loss_scale=pl.lit(65536.0))
    report = diagnose(replace(records, steps=steps, layers=records.layers.with_columns(inf)))
    assert '"backed_off"' in json_v1.render(report)


def test_a_loss_of_nothing_is_resumed() -> None:
    spike = sample("spike.jsonl")
    first = spike.steps.head(100).with_columns(loss=pl.lit(0.0), step=pl.int_range(100, dtype=pl.Int64))
    again = first.with_columns(step=pl.col("step") + 50, line=pl.col("line") + 100)
    assert diagnose(replace(spike, steps=pl.concat([first, again]))).checked


def test_a_run_that_goes_on_without_any_metric() -> None:
    spike = sample("spike.jsonl")
    keys = [c for c in spike.steps.columns if c in KEYS]
    steps = pl.concat([spike.steps, spike.steps.filter(pl.col("step") > 100)]).select(keys)
    assert diagnose(replace(spike, steps=steps)).checked
