"""GD309: a rate that no optimizer can take is an alarm where it did harm, and a note where another one was taken."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gdiag.analyzers.unusable_lr import analyze
from gdiag.measures.run import RunView
from gdiag.model import Severity
from gdiag.pipeline import diagnose
from tests.analyzers.made_runs import cosine, learning, view


def run(value: float, *, since: int = 300, lost: int | None = None, rows: int = 600) -> RunView:
    rate, loss = cosine(rows), learning(rows)
    rate[since:] = value
    if lost is not None:
        loss[lost:] = math.nan
    return view({"loss": loss, "lr": rate})


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_rate_that_is_not_finite_ends_the_run(value: float) -> None:
    (finding,) = analyze(run(value, lost=301))
    assert finding.severity is Severity.WARNING
    assert (finding.where.step, finding.number("nonfinite_step")) == (300, 301)


def test_a_loss_that_stays_finite_shows_another_rate() -> None:
    (finding,) = analyze(run(math.nan))
    assert finding.severity is Severity.INFO
    assert "took another rate" in finding.message


def test_a_rate_below_zero_climbs_and_its_logarithm_does_not() -> None:
    (below,) = analyze(run(-1e-4))
    (logarithm,) = analyze(view({"loss": learning(600), "lr": np.log10(cosine(600))}))
    assert (below.severity, logarithm.severity) == (Severity.WARNING, Severity.INFO)


def test_quiet_on_healthy_rates_and_before_the_first_step() -> None:
    assert analyze(view({"loss": learning(600), "lr": cosine(600)})) == []
    rate = cosine(600)
    rate[0] = math.nan
    assert analyze(view({"loss": learning(600), "lr": rate})) == []


def test_threshold_is_how_soon_the_loss_is_lost() -> None:
    late = run(math.nan, lost=310)
    assert analyze(late)[0].severity is Severity.INFO
    assert analyze(late, reach=20)[0].severity is Severity.WARNING


def test_the_rate_is_named_as_the_cause_of_a_loss_that_is_lost_with_it() -> None:
    report = diagnose(run(math.nan, lost=301).records)
    lost = next(i for i in report.incidents if i.pattern == "nonfinite")
    assert lost.causes[0].cause == "config_change"
    assert lost.causes[0].supports[0].startswith("The learning rate is NaN")
    assert "step 300" in lost.actions[0]
    assert lost.actions[1].startswith("Roll back to the last checkpoint before step 300")


def test_a_note_has_no_cause() -> None:
    report = diagnose(run(math.inf).records)
    told = next(i for i in report.incidents if "learning rate is infinite" in i.title)
    assert (told.pattern, told.causes) == ("log_quality", ())
    assert "param_groups" in told.actions[0]


def test_what_goes_on_is_said_as_far_as_it_is_logged() -> None:
    (late,) = analyze(run(math.nan, lost=330))
    assert "while loss stays finite until step 330: " in late.message
    rate = cosine(600)
    rate[300:] = math.nan
    (alone,) = analyze(view({"eval_loss": learning(600), "lr": rate}))
    assert alone.message.endswith("first at step 300")


def test_a_loss_that_was_lost_once_before_hides_nothing() -> None:
    rate, loss, grad = cosine(600), learning(600), learning(600)
    rate[300:] = grad[10] = math.nan
    grad[301:] = math.nan
    (finding,) = analyze(view({"loss": loss, "grad_norm": grad, "lr": rate}))
    assert (finding.severity, finding.number("nonfinite_step")) == (Severity.WARNING, 301)


def test_a_rate_below_zero_in_all_rows_is_no_logarithm_where_it_is_next_to_zero() -> None:
    climbs, falls = (
        analyze(view({"loss": loss, "lr": -cosine(600) - 1e-6})) for loss in (learning(600)[::-1], learning(600))
    )
    assert (climbs[0].severity, falls[0].severity) == (Severity.WARNING, Severity.INFO)
    assert not any("logarithm" in finding.message for finding in (*climbs, *falls))
