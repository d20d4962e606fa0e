"""A loss that waits for the rate to fall, and one above its start: hints, never alarms."""

from __future__ import annotations

import numpy as np
import pytest

from gdiag.analyzers import lr_schedule, missing_warmup
from gdiag.measures.rate_limit import above_start, worse_than_start
from gdiag.model import Severity
from tests.analyzers.made_runs import Floats, cosine, learning, view

ROWS, TURN = 1000, 800
HELD = np.concatenate((np.linspace(0.02, 1, 50), np.ones(TURN - 50), np.linspace(1, 0.02, ROWS - TURN))) * 1e-3


def annealed(fall: float, descent: float) -> Floats:
    """A loss that falls by `descent` over the last half of the held rate and by `fall` in the decay."""
    place = np.arange(ROWS)
    loss = 3 + 6 * np.exp(-place / 40) - descent * np.clip((place - TURN / 2) / (TURN / 2), 0, None)
    loss -= fall * np.clip((place - TURN) / (ROWS - TURN), 0, 1)
    return np.asarray(loss + np.random.default_rng(2).normal(0, 0.02, ROWS), dtype=np.float64)


@pytest.mark.parametrize(("fall", "descent", "told"), [(0.5, 0.0, True), (0.5, 0.4, False), (0.05, 0.0, False)])
def test_a_loss_that_waits_for_the_rate_is_told_with_the_test_that_decides(
    fall: float, descent: float, told: bool
) -> None:
    (finding,) = lr_schedule.analyze(view({"lr": HELD, "loss": annealed(fall, descent)}))
    assert finding.severity is Severity.INFO
    assert ("gdiag compare" in finding.message) is told
    assert (finding.number("gain_in_decay") is not None) is told


def test_a_rate_that_falls_from_its_peak_on_says_nothing() -> None:
    (finding,) = lr_schedule.analyze(view({"lr": cosine(ROWS), "loss": learning(ROWS)}))
    assert "gdiag compare" not in finding.message


def test_a_loss_above_its_start_is_noted_without_a_warmup() -> None:
    loss = learning(ROWS)
    loss[3:60] += 8.0
    run = view({"lr": cosine(ROWS, warmup=0), "loss": loss})
    until = above_start(run.series("loss"))
    assert until == pytest.approx(59, abs=3)
    assert above_start(view({"loss": learning(ROWS)}).series("loss")) is None


def test_what_a_missing_warmup_costs_is_not_judged_from_one_run() -> None:
    (finding,) = missing_warmup.analyze(view({"lr": cosine(ROWS, warmup=0), "loss": learning(ROWS)}))
    assert finding.severity is Severity.INFO
    assert "gdiag compare" in finding.message


def test_first_updates_that_are_worse_than_guessing() -> None:
    loss = learning(400, noise=0.05, start=5.6)
    assert worse_than_start(view({"loss": loss}).series("loss")) is None
    loss[6] = 7.8
    assert worse_than_start(view({"loss": loss}).series("loss")) == (6, 7.8)
    assert worse_than_start(view({"loss": np.roll(loss, 100)}).series("loss")) is None
    (finding,) = missing_warmup.analyze(view({"loss": loss, "lr": cosine(400, warmup=0)}))
    assert "rises to 7.8 in its first updates, at step 6" in finding.message
    assert finding.severity is Severity.INFO
