"""GD212: gradient norms logged with the loss scale in them."""

from __future__ import annotations

import numpy as np

from gdiag.analyzers.gradient_spike import analyze as spikes
from gdiag.analyzers.scaled_grad_norm import analyze
from gdiag.model import Severity
from tests.analyzers.made_runs import view


def test_fires_on_raw_norms_and_the_others_see_them_divided() -> None:
    scale = np.where(np.arange(900) // 150 % 2, 2.0**15, 2.0**18)
    grad = 0.3 * np.exp(np.random.default_rng(0).normal(0, 0.15, 900))
    run = view({"grad_norm": grad * scale, "loss_scale": scale})
    (finding,) = analyze(run)
    assert finding.severity is Severity.INFO
    assert abs((finding.number("slope") or 0) - 1) < 0.1
    assert np.allclose(run.grad_norm.value, grad)
    assert spikes(run) == []
    assert analyze(view({"grad_norm": grad, "loss_scale": scale})) == []
