"""GD004: columns that never change."""

from __future__ import annotations

import numpy as np

from gdiag.analyzers.dead_metric import analyze
from gdiag.model import Severity
from tests.analyzers.made_runs import learning, view


def test_a_constant_gradient_norm_is_information() -> None:
    (finding,) = analyze(view({"loss": learning(), "grad_norm": np.zeros(1000)}))
    assert finding.severity is Severity.INFO
    assert finding.measure("column") == "grad_norm"


def test_a_loss_that_stands_still_is_a_warning() -> None:
    loss = learning()
    loss[600:] = loss[600]
    (finding,) = analyze(view({"loss": loss}))
    assert finding.severity is Severity.WARNING
    assert (finding.where.step, finding.where.last_step) == (600, 999)


def test_quiet_on_measured_columns() -> None:
    assert analyze(view({"loss": learning(), "grad_norm": np.random.default_rng(0).random(1000)})) == []


def test_threshold_sets_the_rows() -> None:
    assert analyze(view({"loss": learning(), "grad_norm": np.zeros(1000)}), rows=2000) == []


def test_a_loss_of_many_digits_that_stands_still_tells_it_in_few_rows() -> None:
    (finding,) = analyze(view({"loss": np.full(23, 10.8259)}))
    assert finding.severity is Severity.WARNING
    assert analyze(view({"loss": np.full(23, 0.5)})) == []
    assert analyze(view({"loss": np.full(9, 10.8259)})) == []
