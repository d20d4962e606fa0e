"""GD301: the schedule is named."""

from __future__ import annotations

import numpy as np

from gdiag.analyzers.lr_schedule import analyze
from gdiag.model import Severity
from tests.analyzers.made_runs import cosine, view


def test_names_a_cosine_with_its_warmup() -> None:
    (finding,) = analyze(view({"lr": cosine()}))
    assert finding.severity is Severity.INFO
    assert finding.measure("shape") == "cosine"
    assert finding.number("warmup_steps") == 49
    assert "cosine schedule with a warm-up of 49 steps" in finding.message


def test_lists_the_drops_of_a_step_schedule() -> None:
    (finding,) = analyze(view({"lr": np.repeat([1e-3, 1e-4], 100)}))
    assert finding.measure("shape") == "step"
    assert "drops at step 100" in finding.message


def test_silent_on_two_rows() -> None:
    assert analyze(view({"lr": [1e-3, 1e-3]})) == []


def test_a_log_that_ends_in_the_warmup_is_called_so() -> None:
    (finding,) = analyze(view({"lr": np.linspace(1e-6, 1e-4, 100)}))
    assert finding.measure("shape") == "warmup"
    assert "still rises at the last row" in finding.message
