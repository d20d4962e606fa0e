"""GD118: the loss scale over a resume."""

from __future__ import annotations

import numpy as np
import pytest

from gdiag.analyzers import skipped_steps
from gdiag.analyzers.scale_not_restored import analyze
from gdiag.measures.run import RunView
from gdiag.model import Severity
from tests.analyzers.made_runs import Floats, learning, view

STEP = np.concatenate((np.arange(600), np.arange(550, 1000)))
CALM = np.full(1050, 4096.0)


def run(scale: Floats, step: Floats | object = STEP) -> RunView:
    skipped = np.concatenate(([0.0], np.diff(scale) < 0)).astype(np.float64)
    return view({"step": np.asarray(step), "loss": learning(1050), "loss_scale": scale, "skipped": skipped})


def started_anew(first: float = 65536.0) -> Floats:
    scale = CALM.copy()
    search = first / 2.0 ** np.arange(40)
    scale[600:640] = np.maximum(search, 4096.0)
    return scale


def test_warns_of_the_steps_skipped_until_the_scale_fits() -> None:
    (finding,) = analyze(run(started_anew()))
    assert (finding.severity, finding.where.step, finding.where.last_step) == (Severity.WARNING, 550, 554)
    assert (finding.number("scale_before"), finding.number("scale_after"), finding.number("skips")) == (4096, 65536, 4)


def test_its_steps_are_no_collapse() -> None:
    view_ = run(started_anew(2.0**24))
    assert len(analyze(view_)) == 1
    assert all(f.severity is Severity.INFO for f in skipped_steps.analyze(view_))


def test_notes_a_scale_set_back_that_costs_nothing() -> None:
    scale = 65536.0 * 2.0 ** np.minimum(4, np.arange(1050) // 100)
    scale[600:] = 65536.0
    (finding,) = analyze(run(scale))
    assert finding.severity is Severity.INFO


def test_quiet_when_the_scale_goes_on_grows_or_backs_off() -> None:
    assert analyze(run(CALM)) == []
    grown = CALM.copy()
    grown[600:] *= 2
    assert analyze(run(grown)) == []
    assert analyze(run(CALM / np.where(np.arange(1050) < 620, 1.0, 8.0))) == []


@pytest.mark.parametrize(("factor", "fires"), [(4.0, False), (16.0, True)])
def test_without_a_marked_restart_only_a_leap_counts(factor: float, fires: bool) -> None:
    assert bool(analyze(run(started_anew(4096.0 * factor), np.arange(1050)))) is fires


def test_threshold_is_the_number_of_skipped_steps() -> None:
    assert analyze(run(started_anew()), skips=5)[0].severity is Severity.INFO
