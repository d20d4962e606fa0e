"""GD206: short jumps of the gradient norm, with or without a move of the loss."""

from __future__ import annotations

import numpy as np
import pytest

from gdiag.analyzers.gradient_spike import analyze
from gdiag.model import Severity
from tests.analyzers.made_runs import Floats, learning, view


def steady(rows: int = 1000, seed: int = 0) -> Floats:
    return np.asarray(np.exp(np.random.default_rng(seed).normal(0, 0.2, rows)), dtype=np.float64)


@pytest.mark.parametrize(("size", "severity"), [(12, Severity.INFO), (90, Severity.WARNING)])
def test_a_shock_that_the_loss_does_not_show(size: float, severity: Severity) -> None:
    grad = steady()
    grad[500] *= size / grad[500]
    (finding,) = analyze(view({"grad_norm": grad, "loss": learning()}))
    assert (finding.where.step, finding.severity) == (500, severity)
    assert finding.measure("loss_moved") is False
    assert finding.number("rows") == 1


def test_a_spike_with_the_loss_is_information() -> None:
    grad, loss = steady(), learning()
    grad[500] *= 90
    loss[500] += 4
    (finding,) = analyze(view({"grad_norm": grad, "loss": loss}))
    assert (finding.severity, finding.measure("loss_moved")) == (Severity.INFO, True)


def test_many_shocks_are_told_by_the_largest() -> None:
    grad = steady()
    grad[100::100] *= 60
    found = analyze(view({"grad_norm": grad, "loss": learning()}))
    assert len(found) == 3
    assert {f.severity for f in found} == {Severity.INFO}
    assert found[0].number("spikes") == 9


def test_quiet_and_threshold() -> None:
    assert analyze(view({"grad_norm": steady()})) == []
    grad = steady()
    grad[500] *= 8 / grad[500]
    assert len(analyze(view({"grad_norm": grad}))) == 1
    assert analyze(view({"grad_norm": grad}), ratio=10.0) == []
