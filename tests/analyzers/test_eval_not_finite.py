"""GD111: validation is not finite where training is."""

from __future__ import annotations

import numpy as np

from gdiag.analyzers.eval_not_finite import analyze
from gdiag.measures.run import RunView
from gdiag.model import Severity
from tests.analyzers.made_runs import learning, view


def validated(bad_from: int, *, dead_from: int = 1000) -> RunView:
    loss = learning()
    loss[dead_from:] = np.nan
    column: list[float | None] = [None] * 1000
    for step in range(49, 1000, 50):
        column[step] = 3.0 if step < bad_from else float("nan")
    return view({"loss": loss, "eval_loss": column})


def test_fires_at_the_first_bad_evaluation() -> None:
    (finding,) = analyze(validated(500))
    assert finding.severity is Severity.WARNING
    assert finding.where.step == 549
    assert finding.measure("persists") is True
    assert "10 of 20" in finding.message
    assert finding.message.endswith("while training loss is finite")
    assert finding.measure("training_finite") is True


def test_claims_no_finite_training_loss_where_none_is_logged() -> None:
    loss: list[float | None] = [*learning().tolist()[:100], *[None] * 900]
    evaluated = [3.0 if step < 500 else float("nan") for step in range(1000)]
    (finding,) = analyze(view({"loss": loss, "eval_loss": evaluated}))
    assert finding.message.endswith("with no training loss logged from there on")
    assert finding.measure("training_finite") is False


def test_quiet_when_finite_or_when_training_died_first() -> None:
    assert analyze(validated(1000)) == []
    assert analyze(validated(500, dead_from=480)) == []


def test_threshold_is_the_number_of_evaluations() -> None:
    assert analyze(validated(950), rows=2) == []
