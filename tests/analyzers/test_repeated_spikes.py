"""GD103: a series is one finding."""

from __future__ import annotations

import numpy as np
import pytest

from gdiag.analyzers import loss_spike
from gdiag.analyzers.repeated_spikes import analyze
from gdiag.model import Severity
from tests.analyzers.made_runs import Floats, cosine, learning, view
from tests.measures.made import spike


def series(onsets: tuple[int, ...], rows: int = 2000) -> Floats:
    return learning(rows) + sum(spike(rows, onset, 1.5, 10) for onset in onsets)


def test_six_spikes_are_one_finding() -> None:
    run = view({"loss": series((500, 750, 1000, 1250, 1500, 1750)), "lr": cosine(2000)})
    (finding,) = analyze(run)
    assert finding.severity is Severity.WARNING
    assert finding.where.step == pytest.approx(500, abs=1)
    assert finding.number("spikes") == 6
    assert finding.number("median_gap") == pytest.approx(250, abs=3)
    assert finding.number("period") == pytest.approx(250, abs=3)
    assert "every 250 steps" in finding.message
    assert loss_spike.analyze(run) == []


def test_single_rows_count_too() -> None:
    loss = learning(2000)
    loss[[700, 1100, 1500]] += 6
    (finding,) = analyze(view({"loss": loss}))
    assert finding.measure("onsets") == "700, 1100, 1500"
    assert finding.number("period") is None  # three may stand so by chance


def test_spikes_at_the_same_samples_are_told() -> None:
    ids = 16 * (np.arange(2000) % 500)
    (finding,) = analyze(view({"loss": series((600, 1100, 1600)), "sample_start": ids, "sample_end": ids + 16}))
    assert finding.measure("returns_at_same_samples") is True


def test_one_spike_and_two_far_apart_are_none() -> None:
    assert analyze(view({"loss": series((900,))})) == []
    far = view({"loss": series((900, 4000), 5000)})
    assert analyze(far) == []
    assert len(loss_spike.analyze(far)) == 2


def test_threshold_sets_the_least_excess() -> None:
    assert analyze(view({"loss": series((500, 1000, 1500))}), z=1000) == []


def test_cycles_of_the_schedule_are_information() -> None:
    row = np.arange(3000)
    lr = 1e-3 * (0.02 + 0.98 * 0.5 * (1 + np.cos(np.pi * (row % 600) / 600)))
    loss = learning(3000) + 0.6 * (lr / 1e-3) * (row >= 600)
    for finding in [*analyze(view({"loss": loss, "lr": lr})), *loss_spike.analyze(view({"loss": loss, "lr": lr}))]:
        assert finding.severity is Severity.INFO
        assert finding.measure("planned") is True
