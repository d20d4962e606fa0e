from __future__ import annotations

import pytest

from gdiag.analyzers import hot_gpu
from gdiag.model import Severity
from tests.analyzers.made_telemetry import card, noisy, timed, watched


def test_hot_with_full_clocks_is_a_note() -> None:
    (note,) = hot_gpu.analyze(watched(timed(noisy()), [card(g, temperature=83.0) for g in range(4)]))
    assert note.severity is Severity.INFO
    assert "without thermal throttling" in note.message
    assert next(m for m in note.evidence if m.name == "temperature").limit == 87


def test_cool_gpus_are_quiet() -> None:
    assert hot_gpu.analyze(watched(timed(noisy()), [card(g) for g in range(4)])) == []


def test_an_outlier_among_cool_peers_is_named() -> None:
    (note,) = hot_gpu.analyze(watched(timed(noisy()), [*(card(g) for g in range(4)), card(4, temperature=76.0)]))
    assert note.where.gpu == 4
    assert note.number("above_peers") == pytest.approx(14, abs=0.5)


def test_throttled_gpus_are_left_to_gd601() -> None:
    assert hot_gpu.analyze(watched(timed(noisy()), [card(0, temperature=88.0, reasons=32.0)])) == []


def test_the_margin_is_a_threshold() -> None:
    run = watched(timed(noisy()), [card(0, temperature=83.0)])
    assert hot_gpu.analyze(run, margin=2.0) == []
