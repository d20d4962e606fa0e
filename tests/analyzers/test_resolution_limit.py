"""GD007: what the log cannot show."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gdiag.analyzers.resolution_limit import analyze
from gdiag.measures.run import RunView
from gdiag.model import Severity, Value
from tests.analyzers.made_runs import learning, view


def test_every_ten_steps() -> None:
    run = view({"step": np.arange(0, 10_000, 10), "loss": learning()})
    (finding,) = analyze(run)
    assert finding.severity is Severity.INFO
    assert "every 10 steps" in finding.message
    assert finding.number("shortest_event") == 30
    assert analyze(run, every=20) == []


def test_a_sampled_export_and_rounding() -> None:
    sampled = np.sort(np.random.default_rng(0).choice(100_000, 1000, replace=False))
    (finding,) = analyze(view({"step": sampled, "loss": np.round(learning(), 1)}))
    assert "about one in 100" in finding.message
    assert "rounded to 0.1" in finding.message


def test_quiet_on_a_full_log() -> None:
    assert analyze(view({"loss": learning()})) == []


def test_names_of_columns_that_are_not_used_say_nothing_of_sampling() -> None:
    run = view({"step": np.arange(0, 10_000, 10), "loss": learning()})
    source = replace(
        run.records.sources[0],
        notes=(
            "1 numeric column not used: eval_samples_per_second",
            "samples does not count up: not used as samples so far",
        ),
    )
    (finding,) = analyze(RunView(run.run, replace(run.records, sources=(source,))))
    assert "not used" not in finding.message


def test_steps_counted_in_samples_are_no_gaps_between_rows() -> None:
    run = view({"step": np.arange(0, 1_152_000, 1152), "loss": learning()})
    config: dict[str, Value] = {"step_unit": "samples or tokens"}
    assert analyze(RunView(replace(run.run, config=config), run.records)) == []
    (finding,) = analyze(RunView(replace(run.run, config={**config, "batch_size": 288}), run.records))
    assert "every 4 optimizer steps" in finding.message
    assert finding.number("shortest_event") == 12
