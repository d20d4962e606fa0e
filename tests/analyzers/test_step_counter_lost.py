"""GD117: the count of steps over a restart."""

from __future__ import annotations

import numpy as np

from gdiag.analyzers.lr_too_low import analyze as lr_too_low
from gdiag.analyzers.step_counter_lost import analyze
from gdiag.measures.run import RunView
from gdiag.model import Severity
from tests.analyzers.made_runs import Floats, cosine, learning, view

CRASH = 600
TWICE = np.concatenate((np.arange(CRASH), np.arange(1000 - CRASH)))
LEAPT = np.where(np.arange(1000) < CRASH, np.arange(1000), np.arange(1000) + 5000)


def counted(step: Floats | object, loss: Floats | None = None, **columns: Floats) -> RunView:
    own = learning() if loss is None else loss
    return view({"step": np.asarray(step), "loss": own, **columns})


def test_warns_of_a_trained_model_at_step_zero() -> None:
    (finding,) = analyze(counted(TWICE, lr=cosine()))
    assert (finding.severity, finding.where.step, finding.number("step_before")) == (Severity.WARNING, 0, 599)
    assert finding.measure("schedule_begins_again") is False
    assert finding.message.endswith("as the learning rate does")


def test_says_what_begins_again_with_the_counter() -> None:
    lr, tokens = np.concatenate((cosine()[:CRASH], cosine()[: 1000 - CRASH])), np.asarray(1e6 * TWICE, dtype=np.float64)
    (finding,) = analyze(counted(TWICE, lr=lr, tokens=tokens))
    assert finding.measure("schedule_begins_again") is True
    assert finding.message.endswith("with it the learning rate and the tokens seen begin again")


def test_a_trained_model_at_its_first_row_is_no_run_that_does_not_learn() -> None:
    assert lr_too_low(counted(TWICE, lr=cosine())) == []


def test_quiet_on_a_run_started_again_from_nothing() -> None:
    assert analyze(counted(TWICE, np.concatenate((learning()[:CRASH], learning(seed=1)[: 1000 - CRASH])))) == []


def test_quiet_on_a_rewind_and_on_a_fine_tuning_started_again() -> None:
    rewound = np.concatenate((np.arange(CRASH), np.arange(CRASH - 50, 950)))
    assert analyze(counted(rewound)) == []
    level = 1.8 + 0.05 * np.random.default_rng(0).standard_normal(1000)
    assert analyze(counted(TWICE, level)) == []


def test_notes_a_leap_over_which_nothing_was_trained() -> None:
    (finding,) = analyze(counted(LEAPT, lr=cosine(), tokens=np.arange(0, 1e9, 1e6)))
    assert (finding.severity, finding.measure("kind"), finding.where.step) == (Severity.INFO, "counter_leap", 5600)
    assert "the learning rate and the tokens seen do" in finding.message


def test_a_gap_in_the_log_is_no_leap() -> None:
    assert analyze(counted(LEAPT, lr=cosine(6000)[LEAPT])) == []
    assert analyze(counted(LEAPT, tokens=np.asarray(1e6 * LEAPT, dtype=np.float64))) == []
    assert analyze(counted(LEAPT, lr=cosine(), tokens=np.asarray(1e6 * LEAPT, dtype=np.float64))) == []
    assert analyze(counted(LEAPT)) == []


def test_threshold_is_the_share_of_what_was_learned() -> None:
    for excess, fires in ((0.5, True), (1.5, False)):
        loss = learning()
        loss[CRASH:] += excess
        assert bool(analyze(counted(TWICE, loss))) is fires
