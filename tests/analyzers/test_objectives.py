"""Levels of two adversaries are no alarm; what is not finite stays one."""

from __future__ import annotations

import numpy as np

from gdiag.analyzers import loss_divergence
from gdiag.analyzers.objectives import weighed
from gdiag.model import Finding, Location, Measure, Severity
from tests.analyzers.made_runs import learning, view
from tests.measures.made import climb


def test_a_rise_of_one_side_is_information() -> None:
    loss = learning(2000) + climb(2000, 1200, 6.0, 200)
    alone, rival = view({"loss": loss}), view({"loss": loss}, adversarial=True)
    assert [f.severity for f in weighed(alone, loss_divergence.analyze(alone))] == [Severity.CRITICAL]
    assert [f.severity for f in weighed(rival, loss_divergence.analyze(rival))] == [Severity.INFO]


def test_what_is_not_finite_is_a_fault_of_two_as_of_one() -> None:
    run = view({"loss": learning(100)}, adversarial=True)
    nan = Finding("GD101", "loss-not-finite", Severity.CRITICAL, "NaN", Location())
    ends = Finding(
        "GD201", "gradient-explosion", Severity.CRITICAL, "x", Location(), (Measure("ends_nonfinite", True),)
    )
    assert weighed(run, [nan, ends]) == [nan, ends]


def test_a_sum_whose_weights_change_rises_for_information_only() -> None:
    loss = learning(2000) + climb(2000, 1200, 6.0, 200)
    run = view({"loss": loss}, variational=True)
    grad = Finding("GD201", "gradient-explosion", Severity.CRITICAL, "x", Location())
    assert [f.severity for f in weighed(run, [*loss_divergence.analyze(run), grad])] == [
        Severity.INFO,
        Severity.CRITICAL,
    ]


def test_gradients_of_a_surrogate_are_no_measure_of_progress() -> None:
    rng = np.random.default_rng(0)
    rough = Finding("GD213", "unstable-gradients", Severity.WARNING, "x", Location())
    signed, falling = view({"loss": rng.normal(0, 1, 300)}), view({"loss": np.linspace(2.0, -2.0, 300)})
    assert [f.severity for f in weighed(signed, [rough])] == [Severity.INFO]
    assert [f.severity for f in weighed(falling, [rough])] == [Severity.WARNING]
