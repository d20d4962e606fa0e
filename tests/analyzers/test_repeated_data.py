"""GD115: sample ids seen again, left out, and events at the same samples."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gdiag.analyzers.repeated_data import analyze
from gdiag.measures.run import RunView
from gdiag.measures.sample_ids import returns
from gdiag.model import Severity
from tests.analyzers.made_runs import learning, view

Ints = NDArray[np.int64]


def resumed(after: Ints) -> RunView:
    """A run of 600 steps of 8 samples, resumed at 550 with the loader at `after`."""
    step = np.concatenate((np.arange(600), np.arange(550, 1000)))
    start = np.concatenate((8 * np.arange(600), after))
    return view(
        {
            "step": step,
            "loss": np.concatenate((learning()[:600], learning(seed=1)[550:])),
            "sample_start": start,
            "sample_end": start + 8,
        }
    )


def test_warns_of_samples_seen_again() -> None:
    (finding,) = analyze(resumed(8 * np.arange(450)))
    assert finding.severity is Severity.WARNING
    assert (finding.where.step, finding.measure("kind")) == (550, "repeated_samples")
    assert (finding.number("sample_start"), finding.number("sample_end")) == (0, 4400)


def test_tells_of_samples_left_out() -> None:
    (finding,) = analyze(resumed(8 * (600 + np.arange(450))))
    assert finding.severity is Severity.INFO
    assert finding.measure("kind") == "skipped_samples"
    assert finding.number("samples") == 400


def test_quiet_when_the_loader_goes_on() -> None:
    assert analyze(resumed(8 * (550 + np.arange(450)))) == []


def test_quiet_at_epoch_boundaries_and_on_shuffled_ids() -> None:
    start = 8 * (np.arange(1000) % 300)
    assert analyze(view({"loss": learning(), "sample_start": start, "sample_end": start + 8})) == []
    mixed = np.random.default_rng(0).permutation(1000) * 8
    assert analyze(view({"loss": learning(), "sample_start": mixed, "sample_end": mixed + 8})) == []


def test_a_fall_that_later_ids_pass_is_no_epoch() -> None:
    start = 8 * np.concatenate((np.arange(300), np.arange(700)))
    (finding,) = analyze(view({"loss": learning(), "sample_start": start, "sample_end": start + 8}))
    assert (finding.where.step, finding.number("samples")) == (300, 2400)


def paused(after: Ints, pause: float) -> RunView:
    """A run of 1,000 steps of 2 s and 8 samples, with a pause before step 600 and the loader at `after` behind it."""
    time = 2.0 * np.arange(1000) + pause * (np.arange(1000) >= 600)
    start = np.concatenate((8 * np.arange(600), after))
    return view({"loss": learning(), "time": time, "sample_start": start, "sample_end": start + 8})


def test_a_fall_after_a_pause_is_an_epoch_unless_the_pause_outlasts_the_training() -> None:
    again = 8 * np.arange(400)
    assert analyze(paused(again, 600.0)) == []
    (finding,) = analyze(paused(again, 3000.0))
    assert (finding.where.step, finding.measure("kind"), finding.number("samples")) == (600, "repeated_samples", 4800)


def test_ids_that_leap_ahead_at_a_pause_are_left_out() -> None:
    (finding,) = analyze(paused(8 * (1000 + np.arange(400)), 600.0))
    assert (finding.where.step, finding.measure("kind"), finding.number("samples")) == (600, "skipped_samples", 3200)


def test_events_at_the_same_samples_are_named() -> None:
    start = 8 * (np.arange(1000) % 400)
    run = view({"loss": learning(), "sample_start": start, "sample_end": start + 8})
    columns = [run.series(name) for name in ("sample_start", "sample_end", "epoch")]
    (seen,) = returns([100, 250, 500], *columns)
    assert (seen.step, seen.earlier, seen.first, seen.last) == (500, 100, 800, 808)


def test_threshold_is_the_number_reported() -> None:
    assert analyze(resumed(8 * np.arange(450)), most=0) == []
