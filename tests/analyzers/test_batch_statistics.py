"""GD114: the batch of an event against the run's other batches."""

from __future__ import annotations

import numpy as np

from gdiag.analyzers.batch_statistics import analyze
from gdiag.measures.run import RunView
from gdiag.model import Severity
from tests.analyzers.made_runs import learning, view


def spiked(entropy_at: float) -> RunView:
    loss = learning()
    loss[500:530] += 2.0 * 0.5 ** (np.arange(30) / 8)
    entropy = 3.0 + 0.05 * np.random.default_rng(0).standard_normal(1000)
    entropy[500] = entropy_at
    ids = 16 * np.arange(1000)
    return view({"loss": loss, "token_entropy": entropy, "sample_start": ids, "sample_end": ids + 16})


def test_names_the_deviation_and_the_samples() -> None:
    (finding,) = analyze(spiked(4.5))
    assert finding.severity is Severity.INFO
    assert finding.where.step == 500
    z = finding.number("token_entropy_z")
    assert z is not None
    assert z > 10
    assert finding.number("sample_start") == 8000


def test_quiet_on_an_ordinary_batch() -> None:
    assert analyze(spiked(3.0)) == []


def test_tells_of_a_changed_batch_size() -> None:
    loss = learning()
    loss[500:] += 0.5
    batch = np.where(np.arange(1000) < 500, 64.0, 128.0)
    (finding,) = analyze(view({"loss": loss, "batch_size": batch}))
    assert finding.number("batch_size_ratio") == 2.0


def test_threshold_is_z() -> None:
    assert analyze(spiked(4.5), z=1000.0) == []
