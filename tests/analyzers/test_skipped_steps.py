"""GD112: skipped steps and the loss scale."""

from __future__ import annotations

import numpy as np
import pytest

from gdiag.analyzers.skipped_steps import analyze
from gdiag.measures.curves import Curve, Points
from gdiag.measures.loss_scale import stale_norms
from gdiag.model import Severity
from tests.analyzers.made_runs import Floats, view


def scaler(overflow: Floats, start: float = 2.0**16, growth: int = 100) -> tuple[Floats, Floats]:
    """Loss scale and skips of a scaler that halves at overflows and doubles after `growth` clean steps."""
    scale, clean = start, 0
    scales, skips = np.empty(len(overflow)), np.zeros(len(overflow))
    for i, bad in enumerate(overflow):
        if bad:
            scale, clean, skips[i] = max(1.0, scale / 2), 0, 1.0
        else:
            clean += 1
            if clean == growth:
                scale, clean = scale * 2, 0
        scales[i] = scale
    return scales, skips


def test_fires_at_the_first_step_of_a_collapse() -> None:
    bad = np.zeros(600)
    bad[[150, 320]] = 1
    bad[400:420] = 1
    scale, skips = scaler(bad)
    grad = np.where(bad > 0, np.inf, 0.5)
    (finding,) = analyze(view({"loss_scale": scale, "skipped": skips, "grad_norm": grad, "loss": np.full(600, 2.0)}))
    assert finding.severity is Severity.CRITICAL
    assert (finding.where.step, finding.where.last_step) == (400, 419)
    assert finding.measure("reaches_minimum") is True
    assert finding.number("nonfinite_grad_rows") == 20


@pytest.mark.parametrize("column", ["loss_scale", "skipped"])
def test_either_column_is_enough(column: str) -> None:
    bad = np.zeros(400)
    bad[200:210] = 1
    columns = dict(zip(("loss_scale", "skipped"), scaler(bad), strict=True))
    (finding,) = analyze(view({column: columns[column]}))
    assert finding.where.step == 200
    assert finding.severity is Severity.WARNING


@pytest.mark.parametrize("seed", range(5))
def test_ordinary_back_off_is_information(seed: int) -> None:
    bad = (np.random.default_rng(seed).random(3000) < 0.005).astype(float)
    scale, skips = scaler(bad)
    assert [f.severity for f in analyze(view({"loss_scale": scale, "skipped": skips}))] == [Severity.INFO]


def test_search_at_the_start_is_information() -> None:
    bad = np.zeros(400)
    bad[:16] = 1
    scale, skips = scaler(bad, start=2.0**32)
    assert [f.severity for f in analyze(view({"loss_scale": scale, "skipped": skips}))] == [Severity.INFO]


def test_silent_without_skips() -> None:
    assert analyze(view({"loss_scale": np.full(50, 1024.0), "skipped": np.zeros(50)})) == []


def test_threshold_is_the_halvings_in_a_row() -> None:
    bad = np.zeros(400)
    bad[200:204] = 1
    scale, _ = scaler(bad)
    assert [f.severity for f in analyze(view({"loss_scale": scale}))] == [Severity.INFO]
    assert [f.severity for f in analyze(view({"loss_scale": scale}), halvings=4.0)] == [Severity.WARNING]


def test_repeated_norms_in_skipped_steps_are_stale() -> None:
    def curve(value: Floats) -> Curve:
        rows = np.arange(len(value))
        return Curve("x", Points(rows, value, rows, rows), Points(rows[:0], value[:0], rows[:0], rows[:0]))

    grad = np.array([0.5, 0.6, 0.7, 0.7, 0.7, 0.4, 0.4, 0.3])
    skipped = np.array([0, 0, 0, 1, 1, 0, 0, 0.0])
    assert stale_norms(curve(grad), curve(skipped)).tolist() == [3, 4]


def test_skips_while_the_scale_stands_still_are_no_back_off() -> None:
    (finding,) = analyze(view({"loss_scale": np.full(6, 16384.0), "skipped": np.array([1.0, 1, 1, 1, 1, 0])}))
    assert finding.message.endswith("and the loss scale of 16384 does not fall")
