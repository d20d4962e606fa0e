"""When spikes are a series."""

from __future__ import annotations

import pytest

from gdiag.measures.repeats import single_spikes, spike_series
from tests.analyzers.made_runs import learning, view
from tests.measures.made import spike


@pytest.mark.parametrize(
    ("onsets", "sizes", "series"),
    [
        ((600,), (2,), 0), ((600, 1200), (2, 2), 2), ((600, 3600), (2, 2), 0), ((600, 1900, 3600), (2, 2, 2), 3),
        ((600, 1200), (8, 0.5), 0),
    ],
)  # fmt: skip
def test_three_or_two_near_ones(onsets: tuple[int, ...], sizes: tuple[float, ...], series: int) -> None:
    loss = learning(5000)
    for onset, size in zip(onsets, sizes, strict=True):
        loss = loss + spike(5000, onset, size, 10)
    found = view({"loss": loss}).losses[0]
    repeated = spike_series(found)
    assert (len(repeated.events) if repeated else 0) == series
    assert len(single_spikes(found)) == len(onsets) - series


def test_trends_of_gaps_and_sizes() -> None:
    loss = learning(5000)
    for onset, size in zip((1000, 2500, 3500, 4100, 4400), (1, 1.5, 2, 2.5, 3), strict=True):
        loss = loss + spike(5000, onset, size, 10)
    found = spike_series(view({"loss": loss}).losses[0])
    assert found is not None
    assert found.gap_trend == -1
    assert found.excess_trend == 1
    assert found.lr_share is None
