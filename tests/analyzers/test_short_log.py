"""GD011: what is too little to judge by is said, so that silence is not taken for health."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gdiag.analyzers.short_log import analyze
from gdiag.model import Severity
from gdiag.pipeline import diagnose
from tests.analyzers.made_layers import layered, norms
from tests.analyzers.made_runs import cosine, learning, view


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (1, "more than leaps: 1 loss is logged"),
        (5, "more than leaps: 5 losses are logged, spikes need 30 rows, divergence and plateaus 60"),
        (45, "divergence and plateaus: 45 losses are logged, they need 60 rows"),
    ],
)
def test_says_what_the_rows_are_too_few_for(rows: int, said: str) -> None:
    (finding,) = analyze(view({"loss": learning(rows)}))
    assert finding.severity is Severity.INFO
    assert said in finding.message


def test_a_log_without_a_loss_names_what_is_left() -> None:
    (finding,) = analyze(view({"lr": cosine(600), "step_time": np.ones(600)}))
    assert finding.message == "No loss is logged in 600 rows: only learning rate, step time can be judged"
    (empty,) = analyze(view({"loss": [None] * 100}))
    assert empty.message == "No loss is logged in 100 rows: nothing of training can be judged"


def test_quiet_where_enough_is_logged_finite_or_not() -> None:
    assert analyze(view({"loss": learning(60)})) == []
    lost = learning(100)
    lost[10:] = math.nan
    assert analyze(view({"loss": lost})) == []
    assert analyze(view({"eval_loss": learning(100)})) == []


def test_thresholds_are_rows() -> None:
    assert analyze(view({"loss": learning(45)}), learning=40) == []
    (finding,) = analyze(view({"loss": learning(45)}), spikes=50)
    assert "more than leaps" in finding.message


def test_a_short_log_is_never_nothing_found() -> None:
    (incident,) = diagnose(view({"loss": learning(5)}).records).incidents
    assert incident.title.startswith("Too short to judge")
    assert (incident.causes, incident.cost.steps) == ((), None)


def test_layers_without_a_loss_are_named() -> None:
    made = norms(100)
    steps = layered(made).records.steps
    without = layered(made, steps={"lr": np.full(100, 1e-3)})
    assert "loss" not in steps.columns or steps["loss"].count() == 0
    (finding,) = analyze(without)
    assert finding.message.endswith("only learning rate, per-layer values can be judged")


def test_a_loss_that_only_grows_in_its_few_rows_diverges() -> None:
    wild = [182.8, 476.5, 297.4, 97.6, 45.3, 88.0, 133.1, 51.9, 67.4, 108.4, 328.1]
    (finding,) = analyze(view({"loss": wild}))
    assert finding.severity is Severity.WARNING
    assert finding.message.startswith(
        "The loss diverges from step 0 on: 182.8 nat there, 476.5 at step 1, 328.1 at step 10"
    )
    for calm in (wild[:-1], [value / 100 for value in wild], [10.8, 10.9, 11.5, 10.7, 10.6, 10.9, 11.0]):
        (finding,) = analyze(view({"loss": calm}))
        assert finding.severity is Severity.INFO
