"""Levels of two adversaries are no alarm; what is not finite stays one."""

from __future__ import annotations

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
