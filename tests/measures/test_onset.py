"""What other columns say at an onset."""

from __future__ import annotations

import numpy as np
import pytest

from gdiag.measures.onset import onset_context
from tests.analyzers.made_runs import cosine, learning, view


def test_gradient_rate_and_samples() -> None:
    grad = np.exp(np.random.default_rng(0).normal(0, 0.1, 1000))
    grad[497:505] *= 30
    lr = cosine()
    lr[500:] *= 3
    run = view({"loss": learning(), "grad_norm": grad, "lr": lr, "samples": 8 * np.arange(1, 1001)})
    found = onset_context(run.paths[0], 500, 505, 1)
    assert found.grad_ratio == pytest.approx(30, rel=0.4)
    assert found.grad_lead == 3
    assert found.lr_ratio == pytest.approx(3, rel=0.1)
    assert (found.sample_start, found.sample_end) == (4000, 4008)


@pytest.mark.parametrize(
    ("high", "lead"),
    [((492, 500), 0), ((494, 496, 498, 500), 6), ((488, 489, 490), None), ((492,), None), ((502,), -2)],
)
def test_a_lead_is_a_run_up(high: tuple[int, ...], lead: int | None) -> None:
    grad = np.exp(np.random.default_rng(0).normal(0, 0.1, 1000))
    grad[list(high)] *= 8
    assert onset_context(view({"loss": learning(), "grad_norm": grad}).paths[0], 500, 505, 1).grad_lead == lead


def test_no_lead_from_a_sparse_log() -> None:
    grad = np.exp(np.random.default_rng(0).normal(0, 0.1, 1000))
    grad[50:52] *= 30
    run = view({"step": 10 * np.arange(1000), "loss": learning(), "grad_norm": grad})
    found = onset_context(run.paths[0], 500, 510, 10)
    assert found.grad_ratio is not None
    assert found.grad_lead is None


def test_absent_columns_are_none() -> None:
    found = onset_context(view({"loss": learning()}).paths[0], 500, 505, 1)
    assert {getattr(found, name) for name in found.__slots__} == {None}


def test_an_extract_of_a_few_rows_shows_a_tenfold_lead() -> None:
    # The gradient norms of BLOOM-176B's first spike, as its chronicles print them; the loss jumps in the seventh row.
    grad = [0.174, 0.242, 0.947, 2.39, 15.886, 145.119, 960.351, 353.201, 379.33]
    loss = [2.46, 2.2, 2.22, 2.6, 2.24, 2.35, 5.1, 3.49, 3.21]
    found = onset_context(view({"loss": loss, "grad_norm": grad}).paths[0], 6, 6, 1)
    assert found.grad_lead == 2
    calm = onset_context(view({"loss": loss, "grad_norm": [0.2] * 6 + [9.0] * 3}).paths[0], 6, 6, 1)
    assert calm.grad_lead is None
