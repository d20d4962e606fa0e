"""GD114: the batch of an event against the run's other batches."""

from __future__ import annotations

import numpy as np
import pytest

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
    assert finding.number("batch_ratio") == 2.0


def test_threshold_is_z() -> None:
    assert analyze(spiked(4.5), z=1000.0) == []


@pytest.mark.parametrize(("usual", "odd", "fires"), [(0.0, 0.4, True), (0.02, 0.5, True), (0.0, 0.01, False)])
def test_tells_of_repeated_tokens(usual: float, odd: float, fires: bool) -> None:
    loss = learning()
    loss[500:530] += 2.0 * 0.5 ** (np.arange(30) / 8)
    share = np.full(1000, usual)
    share[500] = odd
    found = analyze(view({"loss": loss, "duplicate_share": share}))
    assert bool(found) is fires
    if found:
        assert (found[0].number("duplicate_share_z") or 0) > 10
        assert "a share of duplicates" in found[0].message


def test_tells_of_one_batch_of_unusual_length_but_not_of_a_planned_change() -> None:
    loss = learning()
    loss[500:530] += 2.0 * 0.5 ** (np.arange(30) / 8)
    length = 900.0 + 10.0 * np.random.default_rng(0).standard_normal(1000)
    length[500] = 4096.0
    (finding,) = analyze(view({"loss": loss, "seq_len": length}))
    assert (finding.number("seq_len_z") or 0) > 10
    (finding,) = analyze(view({"loss": loss, "seq_len": np.where(np.arange(1000) < 500, 1024.0, 2048.0)}))
    assert (finding.number("seq_len_z"), finding.number("seq_len_ratio")) == (None, 2.0)
